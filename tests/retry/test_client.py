"""The attempt loop: order of checks, counting, deadlines, cancellation, the log."""

from __future__ import annotations

import asyncio
import functools
import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import aiohttp
import pytest

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    DecoratingClient,
    HttpRequest,
    RequestLog,
    ResponseTimeoutError,
    RetryConfig,
    RetryingClient,
    RetryStopReason,
    RetryStrategy,
    SessionBuilder,
    UnprocessedRequestError,
    capture_logs,
    client_decorator,
    is_timeout,
    is_unprocessed,
    new_response,
)
from aioretry_smithy.testing import ScriptedTransport

if TYPE_CHECKING:
    from aioretry_smithy import ClientRequestContext, Decorator

URL = "http://localhost/orders"
NOW = Backoff.without_delay()


class Always(RetryStrategy):
    """Wants another attempt whatever happens."""

    def __init__(self, backoff: Backoff = NOW) -> None:
        self.backoff = backoff

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> Backoff:
        return self.backoff


class OfArmeriasPage(RetryStrategy):
    """Tells timeouts and what was not processed by their classes."""

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> Backoff | None:
        if isinstance(cause, (ResponseTimeoutError, UnprocessedRequestError)):
            return NOW
        return NOW if ctx.log.response_status == 409 else None


class Kept:
    """Answers a status with a backoff that is made once."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.backoff = Backoff.exponential()

    def __call__(self, status: int | None, cause: Exception | None) -> Backoff | None:
        return self.backoff if status == self.status else None


class Recording(Backoff):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def next_delay(self, num_attempts_so_far: int) -> float:
        self.asked.append(num_attempts_so_far)
        return 0.0


def session(
    transport: ScriptedTransport, *decorators: Decorator, timeout: float | None = None
) -> aiohttp.ClientSession:
    """Build a session that talks to *transport* through *decorators*."""
    builder = SessionBuilder().decorator(transport)
    for decorator in decorators:
        builder.decorator(decorator)
    return builder.response_timeout(timeout).build()


def retrying(strategy: RetryStrategy, **settings: Any) -> Decorator:
    """Shorten the line that every test needs."""
    return RetryingClient.new_decorator(strategy, **settings)


async def silence(ctx: ClientRequestContext, request: HttpRequest) -> int:
    """Be a server that never answers."""
    await asyncio.sleep(math.inf if ctx.deadline is None else 1e6)
    raise AssertionError


def answered_with(status: int, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Answer with a status and headers, underscores for hyphens."""
    return status, {name.replace("_", "-"): text for name, text in headers.items()}, b""


async def test_response_of_the_last_attempt_is_handed_over_as_it_is():
    """A 503 that ends a call is a 503, with its body to be read."""
    transport = ScriptedTransport([503, (503, {}, b"still down")])
    decorator = retrying(Always(), max_total_attempts=2)
    async with session(transport, decorator) as client:
        response = await client.get(URL)
        body = await response.read()

    assert (503, b"still down") == (response.status, body)
    assert RetryStopReason.MAX_TOTAL_ATTEMPTS == RequestLog.of(response).stop_reason


async def test_exception_of_the_last_attempt_is_raised_as_it_is():
    """The caller gets the very exception object, with a note for each attempt."""
    last = aiohttp.ServerDisconnectedError("gone")
    transport = ScriptedTransport([503, TimeoutError(), last])
    decorator = retrying(Always(Backoff.fixed(0.25)), max_total_attempts=3)
    async with session(transport, decorator) as client:
        with pytest.raises(aiohttp.ServerDisconnectedError) as caught:
            await client.get(URL)

    assert last is caught.value
    assert last.__cause__ is None
    assert [
        "attempt 1: 503 Service Unavailable, 0.000 s, then waited 0.250 s (backoff)",
        "attempt 2: TimeoutError, 0.000 s, then waited 0.250 s (backoff)",
        "attempt 3: ServerDisconnectedError: gone, 0.000 s",
    ] == last.__notes__


async def test_decorator_outside_finds_the_last_failure_in_the_log():
    """By the time it sees the exception, the log of the call knows it too."""
    seen = []

    @client_decorator
    async def outside(delegate, ctx, request):
        try:
            return await delegate.execute(ctx, request)
        except aiohttp.ClientError as error:
            seen.append((error, ctx.log.response_cause))
            raise

    last = aiohttp.ServerDisconnectedError()
    transport = ScriptedTransport([503, last])
    decorator = retrying(Always(), max_total_attempts=2)
    async with session(transport, decorator, outside) as client:
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await client.get(URL)

    assert [(last, last)] == seen


async def test_failure_at_the_first_attempt_has_no_notes():
    """A call that was never retried looks as it does without this library."""
    failure = aiohttp.ServerDisconnectedError()
    async with session(
        ScriptedTransport([failure]), retrying(RetryStrategy.never())
    ) as client:
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await client.get(URL)

    assert not hasattr(failure, "__notes__")
    assert RetryStopReason.NO_RETRY == RequestLog.of(failure).stop_reason


@pytest.mark.parametrize(
    ("status", "reason"),
    [(200, None), (399, None), (400, "no_retry"), (503, "no_retry")],
)
async def test_stop_reason_is_none_after_a_success_only(status, reason):
    """A status of 400 and more is no success, whatever the strategy thinks."""
    async with session(
        ScriptedTransport([status]), retrying(RetryStrategy.never())
    ) as client:
        response = await client.get(URL)

    assert reason == RequestLog.of(response).stop_reason


async def test_attempts_limit_stops_before_the_backoff_is_asked():
    """The backoff is asked once for each retry, never at the limit."""
    backoff = Recording()
    transport = ScriptedTransport([503] * 3)
    async with session(
        transport, retrying(Always(backoff), max_total_attempts=3)
    ) as client:
        await client.get(URL)

    assert [1, 2] == backoff.asked
    assert 3 == len(transport.requests)


async def test_ten_attempts_are_made_by_default():
    """The default limit counts the first attempt."""
    transport = ScriptedTransport([503] * 11)
    async with session(transport, retrying(Always())) as client:
        response = await client.get(URL)

    assert 10 == len(transport.requests) == RequestLog.of(response).total_attempts


async def test_backoff_that_is_another_object_starts_its_own_count():
    """A, B, A, B always passes 1; A, A, B, B counts on for as long as it lasts."""
    a, b = Recording(), Recording()
    plan = iter([a, b, a, b, b, b])
    strategy = RetryStrategy.on_status(lambda status, cause: next(plan, None))
    async with session(ScriptedTransport([503] * 7), retrying(strategy)) as client:
        await client.get(URL)

    assert ([1, 1], [1, 1, 2, 3]) == (a.asked, b.asked)


async def test_backoff_that_has_had_enough_stops_the_call():
    """``with_max_attempts`` counts the first attempt too."""
    strategy = Always(NOW.with_max_attempts(2))
    async with session(ScriptedTransport([503] * 3), retrying(strategy)) as client:
        response = await client.get(URL)

    log = RequestLog.of(response)
    assert (2, "backoff_exhausted") == (log.total_attempts, log.stop_reason)


async def test_backoff_made_anew_each_time_warns():
    """A strategy that forgets to keep its backoff hears of it."""
    strategy = RetryStrategy.on_status(lambda status, cause: Backoff.exponential())
    async with session(
        ScriptedTransport([503] * 3), retrying(strategy, max_total_attempts=3)
    ) as client:
        with pytest.warns(RuntimeWarning) as warned:
            await client.get(URL)

    expected = (
        "the retry strategy returned a new Backoff.exponential(0.2, 10.0, 2.0) that"
        " equals the last one; its count starts again each time, so it never grows."
        " Make it once and keep it."
    )
    assert [expected] == [str(warning.message) for warning in warned]


@pytest.mark.parametrize("number", [2, 3])
async def test_equal_backoffs_that_are_kept_do_not_warn(number):
    """Each of several rules has a backoff of its own, which may equal another's."""
    turns = [
        RetryStrategy.on_status(Kept(status)) for status in range(500, 500 + number)
    ]
    strategy = functools.reduce(operator.or_, turns)
    answers = [*range(500, 500 + number)] * 2
    async with session(
        ScriptedTransport(answers), retrying(strategy, max_total_attempts=len(answers))
    ) as client:
        response = await client.get(URL)

    assert len(answers) == RequestLog.of(response).total_attempts


async def test_equal_backoff_made_anew_among_kept_ones_warns():
    """One rule that forgets is enough."""
    kept = Backoff.exponential()
    strategy = RetryStrategy.on_status(
        lambda status, cause: kept if status == 500 else Backoff.exponential()
    )
    async with session(
        ScriptedTransport([500, 503, 503, 500]),
        retrying(strategy, max_total_attempts=4),
    ) as client:
        with pytest.warns(RuntimeWarning, match="equals the last one"):
            await client.get(URL)


@pytest.mark.parametrize("delay", [-1, math.nan, math.inf, "1", True])
async def test_delay_that_is_no_delay_is_an_error_of_the_caller(delay):
    """A backoff of the caller's own that answers nonsense is told so."""

    class Nonsense(Backoff):
        def next_delay(self, num_attempts_so_far: int) -> Any:
            return delay

    async with session(
        ScriptedTransport([503]), retrying(Always(Nonsense()))
    ) as client:
        with pytest.raises(ValueError, match="next_delay: ") as caught:
            await client.get(URL)

    expected = "seconds, finite and >= 0, or None"
    assert f"next_delay: {delay!r} (expected: {expected})" == str(caught.value)
    assert RetryStopReason.ERROR == RequestLog.of(caught.value).stop_reason


async def test_answer_that_is_no_backoff_is_an_error_of_the_caller():
    """A strategy that answers True is told what to answer."""
    strategy = RetryStrategy.on_status(lambda status, cause: True)
    async with session(ScriptedTransport([503]), retrying(strategy)) as client:
        with pytest.raises(
            ValueError, match=r"should_retry: True \(expected: a Backoff, a RetryD"
        ):
            await client.get(URL)


async def test_retry_count_header_is_absent_on_the_first_attempt_only():
    """The server is told how many attempts were made before."""
    transport = ScriptedTransport([503, 503, 200])
    async with session(transport, retrying(Always(), max_total_attempts=3)) as client:
        await client.get(URL, headers={"X-Shop": "7"})

    assert [None, "1", "2"] == [
        request.headers.get("armeria-retry-count") for request in transport.requests
    ]
    assert ["7", "7", "7"] == [
        request.headers["X-Shop"] for request in transport.requests
    ]


async def test_retry_count_header_replaces_a_value_of_the_callers_own():
    """It is set, not appended; on the first attempt the caller's value stays."""
    transport = ScriptedTransport([503, 503])
    async with session(transport, retrying(Always(), max_total_attempts=2)) as client:
        await client.get(URL, headers={"Armeria-Retry-Count": "x"})

    assert [["x"], ["1"]] == [
        request.headers.getall("armeria-retry-count") for request in transport.requests
    ]


@pytest.mark.parametrize(("name", "expected"), [("X-Attempt", "1"), (None, None)])
async def test_retry_count_header_can_be_renamed_and_switched_off(name, expected):
    """The name is a setting; None means no header."""
    transport = ScriptedTransport([503, 503])
    decorator = retrying(Always(), max_total_attempts=2, retry_count_header=name)
    async with session(transport, decorator) as client:
        await client.get(URL)

    assert expected == transport.requests[1].headers.get("X-Attempt")
    assert "armeria-retry-count" not in transport.requests[1].headers


async def test_first_attempt_sends_the_request_of_the_caller_untouched():
    """Mocks that compare arguments see what the caller passed."""
    transport = ScriptedTransport([200])
    decorator = retrying(RetryStrategy.failsafe(), attempt_timeout=3.0)
    async with session(transport, decorator) as client:
        await client.get(URL)

    assert {"allow_redirects": True} == transport.requests[0].options


async def test_async_strategy_is_awaited():
    """``should_retry`` may be a coroutine function."""

    class Slow(RetryStrategy):
        async def should_retry(
            self, ctx: ClientRequestContext, cause: Exception | None
        ) -> Backoff | None:
            await asyncio.sleep(0.5)
            return NOW if ctx.log.response_status == 503 else None

    async with session(ScriptedTransport([503, 200]), retrying(Slow())) as client:
        response = await client.get(URL)

    log = RequestLog.of(response)
    assert (200, 2, 1.0) == (response.status, log.total_attempts, asyncio_now())
    assert 0.5 == log.duration


def asyncio_now() -> float:
    """Return the virtual time, which starts at 0.0."""
    return asyncio.get_running_loop().time()


async def test_strategy_may_tell_failures_by_the_classes_of_armerias_page():
    """An attempt that timed out, and one that was turned away on this side."""
    answers = [silence, UnprocessedRequestError("busy"), 409, 200]
    decorator = retrying(OfArmeriasPage(), attempt_timeout=3.0)
    async with session(ScriptedTransport(answers), decorator) as client:
        response = await client.get(URL)

    assert (200, 4) == (response.status, RequestLog.of(response).total_attempts)
    assert 3.0 == asyncio_now()


async def test_refused_connection_keeps_the_class_that_aiohttp_gave_it():
    """The page's classes do not tell it; ``is_unprocessed()`` does."""
    refused = aiohttp.ClientConnectorError(MagicMock(), ConnectionRefusedError())
    decorator = retrying(OfArmeriasPage())
    async with session(ScriptedTransport([refused]), decorator) as client:
        with pytest.raises(aiohttp.ClientConnectorError) as caught:
            await client.get(URL)

    assert refused is caught.value
    assert is_unprocessed(refused)


async def test_strategy_sees_each_attempt():
    """It gets the child context, with the outcome of that attempt in its log."""
    seen = []

    class Looking(RetryStrategy):
        def should_retry(
            self, ctx: ClientRequestContext, cause: Exception | None
        ) -> Backoff | None:
            seen.append((ctx.attempt, ctx.log.response_status, type(cause)))
            return NOW

    answers = [503, aiohttp.ServerDisconnectedError, 200]
    async with session(
        ScriptedTransport(answers), retrying(Looking(), max_total_attempts=3)
    ) as client:
        await client.get(URL)

    assert [
        (1, 503, type(None)),
        (2, None, aiohttp.ServerDisconnectedError),
        (3, 200, type(None)),
    ] == seen


async def test_error_in_a_strategy_goes_to_the_caller_with_its_context():
    """The attempt's failure is the context, and the log says error."""

    class Broken(RetryStrategy):
        def should_retry(
            self, ctx: ClientRequestContext, cause: Exception | None
        ) -> Backoff | None:
            raise KeyError("bug")

    failure = aiohttp.ServerDisconnectedError()
    async with session(ScriptedTransport([failure]), retrying(Broken())) as client:
        with pytest.raises(KeyError) as caught:
            await client.get(URL)

    assert failure is caught.value.__context__
    assert RetryStopReason.ERROR == RequestLog.of(caught.value).stop_reason


async def test_strategy_may_raise_the_failure_itself():
    """That is no cycle of contexts."""

    class Raising(RetryStrategy):
        def should_retry(
            self, ctx: ClientRequestContext, cause: Exception | None
        ) -> Backoff | None:
            assert cause is not None
            raise cause

    failure = aiohttp.ServerDisconnectedError()
    async with session(ScriptedTransport([failure]), retrying(Raising())) as client:
        with pytest.raises(aiohttp.ServerDisconnectedError) as caught:
            await client.get(URL)

    assert failure is caught.value
    assert failure.__context__ is None


class TestDeadline:
    """The worked examples of the Armeria page, and the edges around them."""

    async def test_call_without_delay_is_cut_at_the_deadline(self):
        """10 s for the call, 3 s an attempt, no delay: cut at 10 in the fourth."""
        transport = ScriptedTransport([silence] * 5)
        decorator = retrying(
            RetryStrategy.on_server_error_status(NOW), attempt_timeout=3.0
        )
        async with session(transport, decorator, timeout=10.0) as client:
            with pytest.raises(ResponseTimeoutError) as caught:
                await client.get(URL)

        log = RequestLog.of(caught.value)
        third = log.children[2].response_cause
        assert "the deadline passed, attempts: 4" == str(caught.value)
        assert 10.0 == asyncio_now() == log.duration
        assert [3.0, 3.0, 3.0, 1.0] == [child.duration for child in log.children]
        assert repr(third) == repr(caught.value.__cause__)
        assert is_timeout(third)
        assert RetryStopReason.DEADLINE == log.stop_reason

    async def test_call_with_delay_stops_when_the_next_attempt_would_be_late(self):
        """With 3 s between attempts it stops at 9 with the outcome of attempt 2."""
        transport = ScriptedTransport([silence] * 3)
        decorator = retrying(
            RetryStrategy.on_server_error_status(Backoff.fixed(3.0)),
            attempt_timeout=3.0,
        )
        async with session(transport, decorator, timeout=10.0) as client:
            with pytest.raises(TimeoutError) as caught:
                await client.get(URL)

        log = RequestLog.of(caught.value)
        assert 9.0 == asyncio_now()
        assert repr(caught.value) == repr(log.children[1].response_cause)
        assert type(caught.value) is AttemptTimeoutError
        assert (2, "deadline") == (log.total_attempts, log.stop_reason)

    async def test_deadline_in_the_first_attempt_is_chained_to_its_own_failure(self):
        """There is no earlier exception to show."""
        async with session(
            ScriptedTransport([silence]), retrying(Always()), timeout=2.0
        ) as client:
            with pytest.raises(ResponseTimeoutError) as caught:
                await client.get(URL)

        log = RequestLog.of(caught.value)
        (attempt,) = log.children
        assert repr(caught.value.__cause__) == repr(attempt.response_cause)
        assert caught.value is log.response_cause

    async def test_deadline_after_responses_only_is_chained_to_the_cut_attempt(self):
        """A 503 is no exception; the cut attempt's own is the only one."""
        async with session(
            ScriptedTransport([503, silence]), retrying(Always()), timeout=2.0
        ) as client:
            with pytest.raises(ResponseTimeoutError) as caught:
                await client.get(URL)

        assert "the call had 2.000 s" == str(caught.value.__cause__)

    async def test_strategy_is_not_asked_about_the_deadline(self):
        """What cannot be retried is no question."""
        asked = []

        class Asked(Always):
            def should_retry(
                self, ctx: ClientRequestContext, cause: Exception | None
            ) -> Backoff:
                asked.append(cause)
                return NOW

        async with session(
            ScriptedTransport([silence]), retrying(Asked()), timeout=2.0
        ) as client:
            with pytest.raises(ResponseTimeoutError):
                await client.get(URL)

        assert [] == asked

    async def test_failure_of_another_kind_is_no_deadline_however_late(self):
        """Who was cut by the deadline has timed out; a reset is a reset."""

        async def late_reset(ctx: ClientRequestContext, request: HttpRequest) -> int:
            ctx.root.set_response_timeout(1.0)
            await asyncio.sleep(1.5)
            raise ConnectionResetError

        async with session(
            ScriptedTransport([late_reset]), retrying(RetryStrategy.never())
        ) as client:
            with pytest.raises(ConnectionResetError) as caught:
                await client.get(URL)

        assert RetryStopReason.NO_RETRY == RequestLog.of(caught.value).stop_reason

    @pytest.mark.parametrize(("delay", "attempts"), [(9.999, 2), (10.0, 1), (11.0, 1)])
    async def test_delay_as_long_as_the_rest_stops_at_once(self, delay, attempts):
        """An attempt with no time left helps nobody; the response is handed over."""
        transport = ScriptedTransport([(503, {}, b"down"), 200])
        decorator = retrying(RetryStrategy.failsafe(Backoff.fixed(delay)))
        async with session(transport, decorator, timeout=10.0) as client:
            response = await client.get(URL)
            body = await response.read()

        log = RequestLog.of(response)
        assert attempts == log.total_attempts
        if attempts == 1:
            assert (b"down", 0.0) == (body, asyncio_now())
            assert RetryStopReason.DEADLINE == log.stop_reason

    async def test_deadline_that_passes_in_the_strategy_stops_with_the_outcome(self):
        """Its own awaiting is not cut, but no attempt starts after the deadline."""

        class Slow(RetryStrategy):
            async def should_retry(
                self, ctx: ClientRequestContext, cause: Exception | None
            ) -> Backoff:
                await asyncio.sleep(5.0)
                return NOW

        async with session(
            ScriptedTransport([503]), retrying(Slow()), timeout=2.0
        ) as client:
            response = await client.get(URL)

        assert (503, 5.0) == (response.status, asyncio_now())
        assert RetryStopReason.DEADLINE == RequestLog.of(response).stop_reason

    async def test_deadline_that_passes_while_a_wait_ends_is_an_error(self):
        """The response has been given up by then; a late timer must not hide it."""

        class Late(DecoratingClient):
            async def execute(
                self, ctx: ClientRequestContext, request: HttpRequest
            ) -> aiohttp.ClientResponse:
                asyncio.get_running_loop().call_later(
                    0.5, ctx.root.set_response_timeout, 0.1
                )
                return await self.delegate.execute(ctx, request)

        decorator = retrying(Always(Backoff.fixed(1.0)))
        async with session(
            ScriptedTransport([503]), Late, decorator, timeout=10.0
        ) as client:
            with pytest.raises(ResponseTimeoutError) as caught:
                await client.get(URL)

        log = RequestLog.of(caught.value)
        assert (1, "deadline") == (log.total_attempts, log.stop_reason)
        assert caught.value.__cause__ is None

    async def test_timeout_of_an_attempt_alone_can_be_retried(self):
        """The attempt's own limit is not the call's."""
        transport = ScriptedTransport([silence, 200])
        decorator = retrying(RetryStrategy.failsafe(NOW), attempt_timeout=3.0)
        async with session(transport, decorator) as client:
            response = await client.get(URL)

        assert (200, 3.0) == (response.status, asyncio_now())


class TestDrain:
    """The rest of a body that is given up before a retry."""

    @pytest.mark.parametrize("delay", [0.0, 0.05, 0.25])
    async def test_drain_is_part_of_the_wait(self, delay):
        """A body that stalls does not make the next attempt late."""
        stalled: list[aiohttp.ClientResponse] = []

        def stall(
            ctx: ClientRequestContext, request: HttpRequest
        ) -> aiohttp.ClientResponse:
            response: Any = new_response(request, 503)
            response._connection = MagicMock()
            loop = asyncio.get_running_loop()
            protocol = aiohttp.client_proto.ResponseHandler(loop)
            protocol.connection_made(MagicMock())
            response.content = aiohttp.StreamReader(protocol, limit=1, loop=loop)
            stalled.append(response)
            return response

        transport = ScriptedTransport([stall, 200])
        decorator = retrying(RetryStrategy.failsafe(Backoff.fixed(delay)))
        timeout = delay + 0.01
        async with session(transport, decorator, timeout=timeout) as client:
            response = await client.get(URL)

        assert (200, delay) == (response.status, asyncio_now())
        assert delay == RequestLog.of(response).children[0].delay
        assert stalled[0].closed


class TestRetryAfter:
    """Server hints: a floor for the delay, and a reason to stop."""

    @pytest.mark.parametrize(
        ("backoff", "hint", "delay", "source"),
        [
            (0.5, "2", 2.0, "retry_after"),
            (2.0, "2", 2.0, "retry_after"),
            (3.0, "2", 3.0, "backoff"),
            (0.5, "soon", 0.5, "backoff"),
        ],
    )
    async def test_longer_of_backoff_and_hint_is_waited(
        self, backoff, hint, delay, source
    ):
        """It never fires early and never shortens the backoff."""
        transport = ScriptedTransport([answered_with(503, Retry_After=hint), 200])
        decorator = retrying(RetryStrategy.failsafe(Backoff.fixed(backoff)))
        async with session(transport, decorator) as client:
            response = await client.get(URL)

        first = RequestLog.of(response).children[0]
        assert (delay, source) == (first.delay, first.delay_source)
        assert delay == asyncio_now()

    @pytest.mark.parametrize(
        ("hint", "settings", "deadline"),
        [
            ("61", {}, None),
            ("6", {"max_retry_after": 5.0}, None),
            ("10", {}, 10.0),
            ("99999999999", {"max_retry_after": None}, None),
        ],
    )
    async def test_hint_that_is_too_long_stops_with_that_response(
        self, hint, settings, deadline
    ):
        """Longer than the settings or the deadline allow: no use waiting."""
        transport = ScriptedTransport([answered_with(429, Retry_After=hint)])
        decorator = retrying(RetryStrategy.failsafe(NOW), **settings)
        async with session(transport, decorator, timeout=deadline) as client:
            response = await client.get(URL)

        assert (429, 0.0) == (response.status, asyncio_now())
        assert (
            RetryStopReason.RETRY_AFTER_TOO_LONG == RequestLog.of(response).stop_reason
        )

    async def test_hint_as_long_as_the_limit_is_waited_for(self):
        """Only a longer one ends the call."""
        transport = ScriptedTransport([answered_with(503, Retry_After="5"), 200])
        decorator = retrying(RetryStrategy.failsafe(NOW), max_retry_after=5.0)
        async with session(transport, decorator) as client:
            response = await client.get(URL)

        assert (200, 5.0) == (response.status, asyncio_now())

    @pytest.mark.parametrize(
        ("year", "reason"), [(1994, None), (9999, RetryStopReason.RETRY_AFTER_TOO_LONG)]
    )
    async def test_date_is_taken_against_our_clock_where_the_server_sends_none(
        self, year, reason
    ):
        """A date that is over holds nobody back, one far away ends the call."""
        date = f"Sun, 06 Nov {year} 08:49:37 GMT"
        transport = ScriptedTransport([answered_with(503, Retry_After=date), 200])
        decorator = retrying(RetryStrategy.failsafe(NOW))
        async with session(transport, decorator) as client:
            response = await client.get(URL)

        assert reason == RequestLog.of(response).stop_reason

    async def test_hint_can_be_ignored(self):
        """``use_retry_after=False`` leaves the delay to the backoff."""
        transport = ScriptedTransport([answered_with(503, Retry_After="99"), 200])
        decorator = retrying(RetryStrategy.failsafe(NOW), use_retry_after=False)
        async with session(transport, decorator) as client:
            response = await client.get(URL)

        assert (200, 0.0) == (response.status, asyncio_now())


class TestCancellation:
    """It is never swallowed and leaves nothing open, wherever it strikes."""

    @pytest.mark.parametrize("after", [0.5, 1.5, 2.5])
    async def test_cancelled_call_ends_as_cancelled(self, after):
        """In an attempt, in the strategy's own waiting, and between attempts."""

        class Slow(RetryStrategy):
            backoff = Backoff.fixed(1.0)

            async def should_retry(
                self, ctx: ClientRequestContext, cause: Exception | None
            ) -> Backoff:
                await asyncio.sleep(1.0)
                return self.backoff

        async def slow(ctx: ClientRequestContext, request: HttpRequest) -> int:
            await asyncio.sleep(1.0)
            return 503

        with capture_logs() as logs:
            async with session(ScriptedTransport([slow]), retrying(Slow())) as client:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(after):
                        await client.get(URL)

        (log,) = logs
        assert RetryStopReason.CANCELLED == log.stop_reason
        assert log.is_complete
        assert all(child.is_complete for child in log.children)
        assert isinstance(log.response_cause, asyncio.CancelledError)

    async def test_cancellation_in_a_decorator_ends_the_log_of_the_attempt(self):
        """Also where no leaf was reached to record it."""

        @client_decorator
        async def stuck(delegate, ctx, request):
            await asyncio.sleep(10.0)

        with capture_logs() as logs:
            async with session(
                ScriptedTransport([]), stuck, retrying(Always())
            ) as client:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await client.get(URL)

        assert [True] == [child.is_complete for child in logs[0].children]

    async def test_cancelled_error_is_not_a_failure_to_retry(self):
        """A decorator that raises it is the caller going away."""
        transport = ScriptedTransport([asyncio.CancelledError(), 200])
        async with session(transport, retrying(Always())) as client:
            with pytest.raises(asyncio.CancelledError):
                await client.get(URL)

        assert 1 == len(transport.requests)


class TestSeveralPasses:
    """A decorator outside sends the request through the retrying client twice."""

    async def test_limits_hold_for_each_pass_and_numbers_go_on(self):
        """Two attempts each, numbered 1 to 4; the header counts to 3."""

        class Twice(DecoratingClient):
            async def execute(
                self, ctx: ClientRequestContext, request: HttpRequest
            ) -> aiohttp.ClientResponse:
                (await self.delegate.execute(ctx, request)).release()
                return await self.delegate.execute(ctx, request)

        transport = ScriptedTransport([503] * 4)
        async with session(
            transport, retrying(Always(), max_total_attempts=2), Twice
        ) as client:
            response = await client.get(URL)

        log = RequestLog.of(response)
        assert [1, 2, 3, 4] == [child.attempt for child in log.children]
        assert [None, "1", "2", "3"] == [
            request.headers.get("armeria-retry-count") for request in transport.requests
        ]


async def test_refusal_of_a_decorator_inside_is_an_attempt():
    """What a decorator turns away is retried like a refused connection."""
    refusals = iter([UnprocessedRequestError("busy"), None])

    @client_decorator
    async def doorman(delegate, ctx, request):
        refusal = next(refusals)
        if refusal is not None:
            raise refusal
        return await delegate.execute(ctx, request)

    async with session(
        ScriptedTransport([200]), doorman, retrying(RetryStrategy.on_unprocessed(NOW))
    ) as client:
        response = await client.post(URL)

    assert 2 == RequestLog.of(response).total_attempts


async def test_response_that_a_decorator_made_is_what_the_strategy_sees():
    """The log of the attempt shows the response that came out of it."""

    @client_decorator
    async def maintenance(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        response.release()
        return new_response(request, 200 if ctx.attempt == 2 else 503)

    async with session(
        ScriptedTransport([200, 200]),
        maintenance,
        retrying(RetryStrategy.failsafe(NOW)),
    ) as client:
        response = await client.get(URL)

    log = RequestLog.of(response)
    assert [503, 200] == [child.response_status for child in log.children]


def test_settings_beside_a_config_are_refused():
    """One of the two would be ignored."""
    config = RetryConfig(RetryStrategy.never())

    with pytest.raises(ValueError) as caught:
        RetryingClient.new_decorator(config, max_total_attempts=3)

    assert (
        "settings: {'max_total_attempts': 3} (expected: none beside a RetryConfig)"
    ) == str(caught.value)


@pytest.mark.parametrize("further", [(5,), (5, 3.0), (5, None)])
def test_attempts_and_their_timeout_may_be_given_by_position(further):
    """As on Armeria's page, ``new_decorator(strategy, 5, 3.0)``; others are named."""
    names = ("max_total_attempts", "attempt_timeout")
    named = dict(zip(names, further, strict=False))
    strategy = RetryStrategy.never()
    by_position, by_name = (
        SessionBuilder().decorator(decorator).describe()
        for decorator in (
            RetryingClient.new_decorator(strategy, *further, use_retry_after=False),
            RetryingClient.new_decorator(strategy, use_retry_after=False, **named),
        )
    )

    assert by_name == by_position
    with pytest.raises(ValueError, match="settings: .* none beside a RetryConfig"):
        RetryingClient.new_decorator(RetryConfig(strategy), *further)


async def test_config_is_taken_whole():
    """A configuration made before serves many clients."""
    config = RetryConfig(Always(), max_total_attempts=3)
    transport = ScriptedTransport([503] * 3)
    async with session(transport, RetryingClient.new_decorator(config)) as client:
        await client.get(URL)

    assert 3 == len(transport.requests)


async def test_log_of_a_call_while_it_runs():
    """A call between two attempts is not complete and shows no response yet."""
    seen: list[tuple[bool, int | None, int]] = []

    def look(ctx: ClientRequestContext, request: HttpRequest) -> int:
        log = ctx.root.log
        seen.append((log.is_complete, log.response_status, len(log.children)))
        return 200

    decorator = retrying(Always(), max_total_attempts=2)
    async with session(ScriptedTransport([503, look]), decorator) as client:
        await client.get(URL)

    assert [(False, None, 2)] == seen


class TestOtherPeoplesCode:
    """What strategies, decorators and exceptions of somebody's own may do."""

    async def test_exception_that_refuses_notes_is_raised_all_the_same(self):
        """Its notes are lost, not the exception."""

        @dataclass(frozen=True)
        class Gone(Exception):  # noqa: N818
            status: int

        gone = Gone(410)
        decorator = retrying(Always(), max_total_attempts=2)
        async with session(ScriptedTransport([503, gone]), decorator) as client:
            with pytest.raises(Gone) as caught:
                await client.get(URL)

        assert gone is caught.value

    async def test_frozen_exception_of_a_strategy_is_raised_all_the_same(self):
        """Its context is lost, not the exception."""

        @dataclass(frozen=True)
        class Enough(Exception):  # noqa: N818
            pass

        class Raising(RetryStrategy):
            def should_retry(
                self, ctx: ClientRequestContext, cause: Exception | None
            ) -> Backoff | None:
                raise Enough

        transport = ScriptedTransport([aiohttp.ServerDisconnectedError()])
        async with session(transport, retrying(Raising())) as client:
            with pytest.raises(Enough):
                await client.get(URL)

    async def test_cause_that_a_strategy_peels_off_makes_no_ring(self):
        """The wrapped exception does not become the context of its own wrapping."""

        class Peeling(RetryStrategy):
            def should_retry(
                self, ctx: ClientRequestContext, cause: Exception | None
            ) -> Backoff | None:
                raise cause.__cause__

        inner, wrapper = KeyError("inner"), aiohttp.ClientError("wrapper")
        wrapper.__cause__ = inner
        async with session(ScriptedTransport([wrapper]), retrying(Peeling())) as client:
            with pytest.raises(KeyError):
                await client.get(URL)

        assert inner.__context__ is None

    async def test_backoff_with_a_careless_comparison_is_not_compared_with_nothing(
        self,
    ):
        """An ``__eq__`` that expects its own kind meets no other at first."""

        class Careless(Recording):
            def __eq__(self, other: Any) -> bool:
                return self.asked == other.asked

            __hash__ = Backoff.__hash__

        decorator = retrying(Always(Careless()), max_total_attempts=2)
        async with session(ScriptedTransport([503, 200]), decorator) as client:
            response = await client.get(URL)

        assert 200 == response.status

    async def test_stream_that_a_decorator_puts_in_stops_at_the_second_attempt(self):
        """It has been read; more attempts would meet the same refusal."""

        async def stream():
            yield b""

        body = stream()

        @client_decorator
        async def streaming(delegate, ctx, request):
            return await delegate.execute(ctx, request.replace(data=body))

        async with session(
            ScriptedTransport([503] * 10), streaming, retrying(Always())
        ) as client:
            with pytest.raises(UnprocessedRequestError) as caught:
                await client.get(URL)

        log = RequestLog.of(caught.value)
        assert (2, "body_not_replayable") == (log.total_attempts, log.stop_reason)

    async def test_pass_that_lost_a_race_does_not_touch_the_log_of_the_winner(self):
        """A decorator that asks twice at once cancels the slower one."""

        @client_decorator
        async def hedging(delegate, ctx, request):
            slow = asyncio.create_task(delegate.execute(ctx, request))
            await asyncio.sleep(1.0)
            response = await delegate.execute(ctx, request)
            slow.cancel()
            await asyncio.wait([slow])
            return response

        transport = ScriptedTransport([silence, 200])
        decorator = retrying(RetryStrategy.failsafe(NOW))
        async with session(transport, decorator, hedging) as client:
            response = await client.get(URL)

        assert (200, None) == (response.status, RequestLog.of(response).stop_reason)

    async def test_attempts_below_a_derived_context_are_those_of_the_call(self):
        """A retrier of somebody's own around ours: every attempt is in the log."""

        @client_decorator
        async def outer(delegate, ctx, request):
            return await delegate.execute(ctx.derive(request), request)

        decorator = retrying(Always(), max_total_attempts=3)
        async with session(ScriptedTransport([503] * 3), decorator, outer) as client:
            response = await client.get(URL)

        log = RequestLog.of(response)
        assert 503 == log.response_status
        assert [None, 503, 503, 503] == [
            child.response_status for child in log.children
        ]
        assert RetryStopReason.MAX_TOTAL_ATTEMPTS == log.stop_reason


async def test_wait_that_was_cancelled_shows_what_was_really_waited():
    """The log adds up: 0.5 s of the 3 s that were planned."""
    await asyncio.sleep(1.0)
    with capture_logs() as logs:
        decorator = retrying(Always(Backoff.fixed(3.0)))
        async with session(ScriptedTransport([503]), decorator) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await client.get(URL)

    assert (0.5, 0.5) == (logs[0].duration, logs[0].children[0].delay)
