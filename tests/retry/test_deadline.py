"""The deadline of a call, and the time limit of an attempt."""

import asyncio
import math

import aiohttp
import pytest
from chains import (
    NOW,
    URL,
    Always,
    after,
    log_of,
    now,
    response_of,
    retrying,
    session,
    silence,
)
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    DecoratingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryingRpcClient,
    RetryRule,
    RetryStopReason,
    RetryStrategy,
    client_decorator,
    is_timeout,
    rpc,
    smithy,
)
from aioretry_smithy.testing import VirtualTimeLoop


class TestDeadline:
    """The worked examples of the Armeria page, and the edges around them."""

    async def test_call_without_delay_is_cut_at_the_deadline(self):
        """10 s for the call, 3 s an attempt, no delay: cut at 10 in the fourth."""
        decorator = retrying(
            RetryStrategy.on_server_error_status(NOW), attempt_timeout=3.0
        )
        with pytest.raises(ResponseTimeoutError) as caught:
            await response_of(session([silence] * 5, decorator, timeout=10.0))

        log = RequestLog.of(caught.value)
        third = log.children[2].response_cause
        assert "the deadline passed, attempts: 4" == str(caught.value)
        assert 10.0 == now() == log.duration
        assert [3.0, 3.0, 3.0, 1.0] == [child.duration for child in log.children]
        assert repr(third) == repr(caught.value.__cause__)
        assert is_timeout(third)
        assert RetryStopReason.DEADLINE == log.stop_reason

    async def test_call_with_delay_stops_when_the_next_attempt_would_be_late(self):
        """With 3 s between attempts it stops at 9 with the outcome of attempt 2."""
        decorator = retrying(
            RetryStrategy.on_server_error_status(Backoff.fixed(3.0)),
            attempt_timeout=3.0,
        )
        with pytest.raises(TimeoutError) as caught:
            await response_of(session([silence] * 3, decorator, timeout=10.0))

        log = RequestLog.of(caught.value)
        assert 9.0 == now()
        assert repr(caught.value) == repr(log.children[1].response_cause)
        assert type(caught.value) is AttemptTimeoutError
        assert (2, "deadline") == (log.total_attempts, log.stop_reason)

    async def test_deadline_in_the_first_attempt_is_chained_to_its_own_failure(self):
        """There is no earlier exception to show."""
        with pytest.raises(ResponseTimeoutError) as caught:
            await response_of(session([silence], retrying(Always()), timeout=2.0))

        log = RequestLog.of(caught.value)
        (attempt,) = log.children
        assert repr(caught.value.__cause__) == repr(attempt.response_cause)
        assert caught.value is log.response_cause

    async def test_deadline_after_responses_only_is_chained_to_the_cut_attempt(self):
        """A 503 is no exception; the cut attempt's own is the only one."""
        with pytest.raises(ResponseTimeoutError) as caught:
            await response_of(session([503, silence], retrying(Always()), timeout=2.0))

        assert "the call had 2.000 s" == str(caught.value.__cause__)

    async def test_deadline_is_chained_to_an_earlier_failure_that_is_falsy(self):
        """An exception that is a collection of none, such as errors of fields."""

        class FieldsError(ConnectionError):
            def __len__(self):
                return 0

        answers = [FieldsError(), silence]
        with pytest.raises(ResponseTimeoutError) as caught:
            await response_of(session(answers, retrying(Always()), timeout=2.0))

        assert FieldsError is type(caught.value.__cause__)

    async def test_strategy_is_not_asked_about_the_deadline(self):
        """A call without time for another attempt is not shown to it."""
        asked = []

        class Asked(Always):
            def should_retry(self, ctx, cause):
                asked.append(cause)
                return NOW

        with pytest.raises(ResponseTimeoutError):
            await response_of(session([silence], retrying(Asked()), timeout=2.0))

        assert [] == asked

    @pytest.mark.parametrize("other", [silence, after(1.0, ConnectionResetError())])
    async def test_deadline_that_cuts_a_group_of_requests_says_so(self, other):
        """A decorator may send two at once, of which one may fail otherwise."""

        @client_decorator
        async def both(delegate, ctx, request):
            sends = (delegate.execute(ctx, request) for _ in range(2))
            failures = await asyncio.gather(*sends, return_exceptions=True)
            raise ExceptionGroup("both", [ExceptionGroup("each", failures)])

        answers = [silence, other]
        with pytest.raises((ResponseTimeoutError, ExceptionGroup)) as caught:
            await response_of(session(answers, both, retrying(0.0), timeout=2.0))

        is_cut = type(caught.value) is ResponseTimeoutError
        assert is_cut == (other is silence)
        assert RetryStopReason.DEADLINE == RequestLog.of(caught.value).stop_reason

    async def test_failure_of_another_kind_is_no_deadline_however_late(self):
        """An attempt cut by the deadline has timed out; a reset is a reset."""

        async def late_reset(ctx, request):
            ctx.root.set_response_timeout(1.0)
            await asyncio.sleep(1.5)
            raise ConnectionResetError

        with pytest.raises(ConnectionResetError) as caught:
            await response_of(session([late_reset], retrying(RetryStrategy.never())))

        assert RetryStopReason.NO_RETRY == RequestLog.of(caught.value).stop_reason

    @pytest.mark.parametrize(("delay", "attempts"), [(9.999, 2), (10.0, 1), (11.0, 1)])
    async def test_delay_as_long_as_the_rest_stops_at_once(self, delay, attempts):
        """An attempt with no time left helps nobody; the response is handed over."""
        decorator = retrying(delay)
        async with session(
            [(503, {}, b"down"), 200], decorator, timeout=10.0
        ) as client:
            response = await client.get(URL)
            body = await response.read()

        log = RequestLog.of(response)
        assert attempts == log.total_attempts
        if attempts == 1:
            assert (b"down", 0.0) == (body, now())
            assert RetryStopReason.DEADLINE == log.stop_reason

    async def test_deadline_that_passes_in_the_strategy_stops_with_the_outcome(self):
        """Its awaiting is cut, and no attempt starts after the deadline."""

        class Slow(RetryStrategy):
            async def should_retry(self, ctx, cause):
                await asyncio.sleep(5.0)
                return NOW

        response = await response_of(session([503], retrying(Slow()), timeout=2.0))

        assert (503, 2.01) == (response.status, now())
        assert RetryStopReason.DEADLINE == RequestLog.of(response).stop_reason

    async def test_deadline_that_passes_while_a_wait_ends_is_an_error(self):
        """The response has been given up by then; a late timer must not hide it."""

        class Late(DecoratingClient):
            async def execute(self, ctx, request):
                asyncio.get_running_loop().call_later(
                    0.5, ctx.root.set_response_timeout, 0.1
                )
                return await self.delegate.execute(ctx, request)

        decorator = retrying(Always(Backoff.fixed(1.0)))
        with pytest.raises(ResponseTimeoutError) as caught:
            await response_of(session([503], Late, decorator, timeout=10.0))

        log = RequestLog.of(caught.value)
        assert (1, "deadline") == (log.total_attempts, log.stop_reason)
        assert caught.value.__cause__ is None

    async def test_timeout_of_an_attempt_alone_can_be_retried(self):
        """The attempt's own limit is not the call's."""
        decorator = retrying(0.0, attempt_timeout=3.0)
        response = await response_of(session([silence, 200], decorator))

        assert (200, 3.0) == (response.status, now())


def starts_of(log):
    """Return when the attempts began, in seconds after the first."""
    first = log.children[0].started
    return [round(each.started - first, 3) for each in log.children]


@pytest.mark.parametrize(
    ("seconds", "starts"),
    [(0.5, [0]), (1.0, [0, 1]), (2.5, [0, 1, 2]), (3, [0, 1, 2, 3])],
)
async def test_last_attempt_begins_in_time(seconds, starts):
    """One that begins exactly then is in time; the call ends as its last attempt."""
    answers = [503] * 9
    chain = retrying(Always(Backoff.fixed(1.0)), stop_after_delay=seconds)
    log = await log_of(session(answers, chain))

    assert starts == starts_of(log)
    assert (503, RetryStopReason.STOP_AFTER_DELAY) == (
        log.response_status,
        log.stop_reason,
    )
    assert starts[-1] == now()


async def test_attempt_under_way_is_not_cut():
    """It may last as long as the call."""

    async def slow(ctx, request):
        await asyncio.sleep(4.0)
        return 503

    chain = retrying(Always(Backoff.fixed(1.0)), stop_after_delay=5.5)
    log = await log_of(session([slow, slow, slow], chain))

    assert [0, 5] == starts_of(log)
    assert 9.0 == now()


async def test_wait_that_the_server_asks_for_counts():
    """The hint is not cut to fit."""
    answers = [(503, {"Retry-After": "3"}, b""), 200]
    chain = retrying(Always(Backoff.fixed(1.0)), stop_after_delay=2.0)
    log = await log_of(session(answers, chain))

    assert 0.0 == now()
    assert RetryStopReason.STOP_AFTER_DELAY == log.stop_reason


async def test_wait_before_the_first_attempt_does_not_count():
    """A decorator outside may have waited for a turn."""

    @client_decorator
    async def late(delegate, ctx, request):
        await asyncio.sleep(7.0)
        return await delegate.execute(ctx, request)

    chain = retrying(Always(Backoff.fixed(1.0)), stop_after_delay=1.0)
    log = await log_of(session([503, 503, 503], chain, late))

    assert [0, 1] == starts_of(log)


async def test_functions_and_smithy_strategies_have_it():
    """All retrying clients decide so."""
    calls = []
    rule = RetryRule(exceptions=[KeyError], backoff=Backoff.fixed(1.0))

    @rpc(RetryingRpcClient.new_decorator(rule, stop_after_delay=2.0), idempotent=True)
    async def fetch():
        calls.append(now())
        raise KeyError

    with pytest.raises(KeyError):
        await fetch()
    assert [0, 1, 2] == calls

    class Second:
        def compute_next_backoff_delay(self, retry_attempt):
            return 1.0

    strategy = smithy.StandardRetryStrategy(backoff_strategy=Second(), max_attempts=9)
    log = await log_of(session([503] * 9, retrying(strategy, stop_after_delay=3.0)))
    assert [0, 1, 2, 3] == starts_of(log)
    assert RetryStopReason.STOP_AFTER_DELAY == log.stop_reason


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), "5", True])
def test_limit_that_is_none(seconds):
    """It is refused at once."""
    with pytest.raises(ValueError, match=r"\Astop_after_delay: .*finite and > 0"):
        retrying(Always(), stop_after_delay=seconds)


def test_word_of_another_library():
    """What backoff calls it is known."""
    with pytest.raises(ValueError, match="perhaps 'stop_after_delay'"):
        retrying(Always(), max_time=5.0)


# Near enough, and powers of two, whose multiples are exact.
TICKS = (2**-10, 2**-6)
offsets = st.floats(0.0, 0.05)
each_tick = pytest.mark.parametrize("tick", TICKS)


class CoarseLoop(VirtualTimeLoop):
    """Shows the time in whole ticks, and fires what is due within the present one."""

    def __init__(self, tick):
        self.tick = tick
        super().__init__()

    def exact(self):
        """Return the time between its ticks, too."""
        return super().time()

    def time(self):
        return math.floor(super().time() / self.tick) * self.tick

    def _set_time(self, now):
        super()._set_time(now)
        self._clock_resolution = self.tick


def call_on_coarse_clock(tick, offset, answer, *decorators, timeout):
    """Make a call that begins *offset* after a tick; return its log and its error."""

    async def main():
        await asyncio.sleep(offset)
        answers = [answer] * 1000
        with pytest.raises(aiohttp.ServerConnectionError) as caught:
            await response_of(session(answers, *decorators, timeout=timeout))
        log = RequestLog.of(caught.value)
        began = log.started
        starts = [child.started - began for child in log.children]
        return log, caught.value, starts

    with asyncio.Runner(loop_factory=lambda: CoarseLoop(tick)) as runner:
        return runner.run(main())


async def silent(ctx, request):
    await asyncio.sleep(3600.0)


def trying(attempt_timeout, delay=0.0):
    return retrying(delay, max_total_attempts=1000, attempt_timeout=attempt_timeout)


@each_tick
@given(offset=offsets, timeout=st.floats(0.2, 2.0), part=st.floats(0.2, 1.0))
def test_call_that_its_deadline_cut_says_so(tick, offset, timeout, part):
    """However attempts and ticks fall, no attempt goes out in the last tick."""
    attempts = trying(part * timeout)
    log, error, starts = call_on_coarse_clock(
        tick, offset, silent, attempts, timeout=timeout
    )

    assert ResponseTimeoutError is type(error)
    assert RetryStopReason.DEADLINE is log.stop_reason
    assert all(timeout - start > tick for start in starts[1:])


@each_tick
@given(offset=offsets)
def test_coarse_clock_makes_no_more_attempts(tick, offset):
    """Three attempts of 3 s and a fourth that is cut, by any clock."""
    log, error, starts = call_on_coarse_clock(
        tick, offset, silent, trying(3.0), timeout=10.0
    )

    assert ResponseTimeoutError is type(error)
    assert [0, 3, 6, 9] == [round(start) for start in starts]
    kinds = [type(child.response_cause) for child in log.children]
    assert [*[AttemptTimeoutError] * 3, ResponseTimeoutError] == kinds


@each_tick
@given(offset=offsets)
def test_wait_that_ends_in_the_last_tick_is_not_begun(tick, offset):
    """An attempt that could only begin then helps nobody."""
    attempts = trying(None, 1.0)
    answer = aiohttp.ServerDisconnectedError()
    log, error, starts = call_on_coarse_clock(
        tick, offset, answer, attempts, timeout=1.0 + tick / 2
    )

    assert [0.0] == starts
    assert answer is error
    assert RetryStopReason.DEADLINE is log.stop_reason


@each_tick
@given(offset=offsets)
def test_failure_in_the_last_tick_is_the_deadline(tick, offset):
    """A failure of any kind in the very last moment is not retried any more."""

    async def late(ctx, request):
        await asyncio.sleep(1.0 - tick / 2)
        raise TimeoutError

    _, error, starts = call_on_coarse_clock(
        tick, offset, late, trying(None), timeout=1.0
    )

    assert [0.0] == starts
    assert ResponseTimeoutError is type(error)


@each_tick
@given(offset=offsets)
def test_call_that_nothing_retries_says_so_too(tick, offset):
    """A chain without a retrying client knows its deadline as well."""
    _, error, _ = call_on_coarse_clock(
        tick, offset, silent, DecoratingClient, timeout=1.0
    )

    assert ResponseTimeoutError is type(error)
    assert "the call had 1.000 s" == str(error)
    assert TimeoutError is type(error.__cause__)


def test_attempt_of_less_than_a_tick_is_made():
    """A limit below the resolution of the clock does not keep a call from starting."""
    attempts = trying(0.001)
    _, error, starts = call_on_coarse_clock(2**-6, 0.0, silent, attempts, timeout=0.01)

    assert [0.0] == starts
    assert ResponseTimeoutError is type(error)


@each_tick
@given(offset=offsets, hint=st.integers(0, 200).map(lambda ms: ms / 1000))
def test_hint_is_never_waited_for_too_short(tick, offset, hint):
    """It is rounded up to the clock, since a timer may be a tick early."""
    sent = []
    loop = CoarseLoop(tick)

    def answer(ctx, request):
        sent.append(loop.exact())
        return (503, {"Retry-After": f"{hint}"}, b"") if len(sent) == 1 else 200

    async def main():
        await asyncio.sleep(offset)
        await response_of(session([answer] * 2, trying(None)))

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main())

    waited = sent[1] - sent[0]
    assert hint <= waited + 1e-9
    assert waited <= hint + 3 * tick


@each_tick
def test_hint_that_just_fits_is_not_rounded_up(tick):
    """The call is worth more than the tick."""
    answers = [(503, {"Retry-After": "1"}, b""), 200]

    async def main():
        client = session(answers, trying(None), timeout=1.0 + 1.5 * tick)
        return (await response_of(client)).status

    with asyncio.Runner(loop_factory=lambda: CoarseLoop(tick)) as runner:
        assert 200 == runner.run(main())
