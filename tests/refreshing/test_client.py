"""The client that sends tokens, and fetches others when they are refused."""

from __future__ import annotations

import asyncio
import functools
import gc
import io
import traceback
import warnings
import weakref

import aiohttp
import pytest
from chains import (
    SAFELY,
    URL,
    after,
    bad_argument,
    chain,
    decorated,
    log_of,
    now,
    pass_on,
    refused,
    retrying,
    session,
)

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    EndpointGroup,
    HedgingClient,
    IdempotencyKeyClient,
    LoggingClient,
    RefreshingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryConfig,
    RetrySafety,
    RetryStrategy,
    SessionBuilder,
    UnprocessedRequestError,
    capture_logs,
    client_decorator,
    is_unprocessed,
    request_options,
    retry_safety,
    rpc,
    unwrap,
)
from aioretry_smithy.testing import ScriptedTransport

BASE = "http://localhost/"
with warnings.catch_warnings():
    # From 3.14 on aiohttp wants a header in its place.
    warnings.simplefilter("ignore", DeprecationWarning)
    AUTH = aiohttp.BasicAuth("me", "pw")
CHAINS = pytest.mark.parametrize("between", [(), (pass_on,)], ids=["own", "foreign"])


class Tokens:
    """Gives out tokens, each a second after it was asked for, the newest valid."""

    def __init__(self, *failures, takes=1.0):
        self.failures = [*failures]
        self.asked = 0
        self.takes = takes

    async def fetch(self):
        self.asked += 1
        await asyncio.sleep(self.takes)
        if self.failures and (failure := self.failures.pop(0)):
            raise failure
        return f"token-{self.asked}"

    def expire(self):
        self.asked += 1

    def answer(self, ctx, request):
        valid = f"Bearer token-{self.asked}"
        return 200 if request.headers.get("Authorization") == valid else 401

    def decorator(self, **settings):
        return RefreshingClient.new_decorator(self.fetch, **settings)


def refreshing_session(tokens, *outside, inside=(), answers=100, **settings):
    """Build a session with an origin, which refreshes its token."""
    transport = [tokens.answer] * answers if isinstance(answers, int) else answers
    settings = {"base_url": BASE, **settings}
    own = settings.pop("own", {})
    return session(transport, *inside, tokens.decorator(**own), *outside, **settings)


async def outcomes(opened, calls, **options):
    """Make calls at once; return their statuses, or the classes of their failures."""
    got = await asyncio.gather(
        *(opened.get("/", **options) for _ in range(calls)), return_exceptions=True
    )
    return [getattr(each, "status", type(each)) for each in got]


def sent(transport, header="Authorization"):
    return [each.headers.get(header) for each in transport.requests]


class TestSingleFlight:
    """One fetch for all who need a token at the same time."""

    @CHAINS
    async def test_calls_at_once_fetch_once(self, between):
        """Before the first request, and when the token has expired."""
        tokens = Tokens()
        row = (*between, retrying(SAFELY), *between)
        async with refreshing_session(tokens, *row, inside=between) as opened:
            assert [200] * 10 == await outcomes(opened, 10)
            assert 1 == tokens.asked
            assert [200] == await outcomes(opened, 1)
            tokens.expire()
            assert [200] * 10 == await outcomes(opened, 10)

        assert 3 == tokens.asked

    async def test_late_401_takes_the_newer_token(self):
        """What came meanwhile is good for a request of before, too."""
        tokens = Tokens(takes=0.1)
        quick, slow = tokens.answer, after(5.0, 401)
        answers = [quick, slow, 401, quick, quick]
        async with refreshing_session(tokens, answers=answers) as opened:
            await opened.get("/")
            late = asyncio.create_task(opened.get("/"))
            await asyncio.sleep(1.0)
            await opened.get("/")
            assert 200 == (await late).status

        assert 2 == tokens.asked

    async def test_same_token_again_costs_one_fetch(self):
        """A server that insists on its 401 gets it once for all calls at once."""
        asked = []

        async def fetch():
            asked.append(1)
            await asyncio.sleep(1.0)
            return "stale"

        row = RefreshingClient.new_decorator(fetch)
        async with session([401] * 20, row, base_url=BASE) as opened:
            assert [401] * 10 == await outcomes(opened, 10)

        assert 2 == len(asked)

    async def test_sessions_of_one_decorator_share_the_token(self):
        """Also one that is being fetched."""
        tokens = Tokens()
        row = tokens.decorator()
        async with (
            session([tokens.answer] * 9, row, base_url=BASE) as one,
            session([tokens.answer] * 9, row, base_url=BASE) as other,
        ):
            got = await asyncio.gather(one.get("/"), other.get("/"))

        assert [200, 200] == [each.status for each in got]
        assert 1 == tokens.asked

    async def test_fetch_of_another_class_of_function(self):
        """A partial or a lambda that returns a coroutine will do."""
        tokens = Tokens()
        row = RefreshingClient.new_decorator(lambda: tokens.fetch() or None)
        async with session([tokens.answer], row, base_url=BASE) as opened:
            assert [200] == await outcomes(opened, 1)

    @pytest.mark.skipif(
        not hasattr(asyncio, "eager_task_factory"), reason="new in Python 3.12"
    )
    async def test_fetch_may_end_at_once(self):
        """Where tasks begin as soon as they are made."""
        asked = []

        async def fetch():
            asked.append(1)
            return f"token-{len(asked)}"

        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        row = RefreshingClient.new_decorator(fetch)
        async with session([200, 401, 200, 200], row, base_url=BASE) as opened:
            for _ in range(3):
                assert [200] == await outcomes(opened, 1)

        assert 2 == len(asked)


class TestFailures:
    """A fetch that fails fails all who wait, and no one after."""

    async def test_each_gets_an_exception_of_its_own(self):
        """Whose log is that of its call."""
        failure = aiohttp.ClientPayloadError("no token")
        tokens = Tokens(failure)
        async with refreshing_session(tokens) as opened:
            calls = [opened.get(f"/{n}") for n in range(3)]
            got = await asyncio.gather(*calls, return_exceptions=True)
            assert [200] == await outcomes(opened, 1)

        assert [aiohttp.ClientPayloadError] * 3 == [*map(type, got)]
        assert 3 == len({*map(id, got)})
        logs = [RequestLog.of(each) for each in got]
        assert ["/0", "/1", "/2"] == [log.request_url.path for log in logs]
        for each in got:
            functions = [
                frame.name for frame in traceback.extract_tb(each.__traceback__)
            ]
            assert 1 == functions.count("execute")
            assert "fetch" == functions[-1]

    async def test_nothing_is_left_for_the_collector(self):
        """Neither of a failure nor of a fetch that was given up."""

        class OwnError(Exception):
            pass

        alive = []

        async def fetch():
            await asyncio.sleep(1.0)
            failure = OwnError("no")
            alive.append(weakref.ref(failure))
            try:
                raise failure
            finally:
                del failure

        row = RefreshingClient.new_decorator(fetch), retrying(SAFELY)
        async with session([200] * 9, *row, base_url=BASE) as opened:
            gc.collect()
            assert [OwnError] * 3 == await outcomes(opened, 3)
            with request_options(response_timeout=0.5):
                assert [ResponseTimeoutError] * 2 == await outcomes(opened, 2)
            await asyncio.sleep(1.0)
            assert {None} == {each() for each in alive}
            assert 0 == gc.collect()

    async def test_nothing_was_sent(self):
        """So any method may be sent again."""
        tokens = Tokens(OSError("down"))
        async with refreshing_session(tokens, retrying(SAFELY)) as opened:
            response = await opened.post("/", json={})
            log = RequestLog.of(response)

        assert 200 == response.status
        assert [False, True] == [each.sent for each in log.children]

    async def test_failure_after_a_401_may_have_been_processed(self):
        """The server has seen the request; its 401 stays in the log."""
        tokens = Tokens(None, OSError("down"))
        with capture_logs() as logs:
            async with refreshing_session(tokens, retrying(SAFELY)) as opened:
                await opened.get("/")
                tokens.expire()
                tokens.failures[:] = [OSError("down")]
                with pytest.raises(OSError, match="down") as caught:
                    await opened.post("/")

        assert not is_unprocessed(caught.value)
        assert RetrySafety.MAYBE is retry_safety(caught.value)
        first, second = logs[1].children
        assert (401, "token", 1.0) == (
            first.response_status,
            first.delay_source,
            first.delay,
        )
        assert not second.sent
        assert isinstance(second.response_cause, OSError)

    async def test_failure_outside_retries_is_that_of_the_call(self):
        """Where there is one log, it shows the failure."""
        tokens = Tokens(None)
        with capture_logs() as logs:
            async with refreshing_session(tokens) as opened:
                await opened.get("/")
                tokens.expire()
                tokens.failures[:] = [OSError("down")]
                with pytest.raises(OSError, match="down"):
                    await opened.get("/")

        assert isinstance(logs[1].response_cause, OSError)

    async def test_breaker_around_it_does_not_count_it(self):
        """The server had no part in it."""
        tokens = Tokens(OSError("down"))
        breaker = CircuitBreaker("orders")
        row = CircuitBreakerClient.new_decorator(breaker)
        async with refreshing_session(tokens, row) as opened:
            assert [OSError] == await outcomes(opened, 1)

        assert 0 == breaker.event_count.total

    async def test_cancelled_fetch_cancels_no_call(self):
        """A call that was not cancelled must not look so."""

        async def fetch():
            raise asyncio.CancelledError

        row = RefreshingClient.new_decorator(fetch)
        async with session([], row, base_url=BASE) as opened:
            with pytest.raises(UnprocessedRequestError, match="was cancelled"):
                await opened.get("/")

    async def test_exception_that_cannot_be_copied_has_the_same_name(self):
        """The first one gets the very exception."""

        class OddError(Exception):
            def __new__(cls, *, only):
                return super().__new__(cls)

            def __init__(self, *, only):
                super().__init__(only)

        failure = OddError(only="odd")
        async with refreshing_session(Tokens(failure)) as opened:
            calls = [opened.get("/") for _ in range(2)]
            first, other = await asyncio.gather(*calls, return_exceptions=True)

        assert failure is first
        assert "OddError" == type(other).__name__
        assert "odd" == str(other)

    @pytest.mark.parametrize(
        ("given", "what"),
        [
            ("", "an empty text"),
            ("S3CRET\n", "a text"),
            ("S3CRET\r\nX-Admin: 1", "a text"),
            (None, "NoneType"),
            (b"S3CRET", "bytes"),
        ],
    )
    async def test_no_token_is_the_caller_s_mistake(self, given, what):
        """One attempt, nothing sent, and the message does not show a secret."""

        async def fetch():
            return given

        row = RefreshingClient.new_decorator(fetch), retrying(SAFELY)
        with capture_logs() as logs:
            async with session([], *row, base_url=BASE) as opened:
                with pytest.raises(TypeError) as caught:
                    await opened.get("/")

        assert f"fetch gave {what} (expected: a text that" in str(caught.value)
        assert "S3CRET" not in f"{caught.value}{logs[0].render()}"
        assert 1 == logs[0].total_attempts

    async def test_function_that_is_not_async_is_the_caller_s_mistake(self):
        """It says so; the token is not shown."""
        row = RefreshingClient.new_decorator(lambda: "S3CRET"), retrying(SAFELY)
        async with session([], *row, base_url=BASE) as opened:
            with pytest.raises(
                TypeError, match="expected: an async function"
            ) as caught:
                await opened.get("/")

        assert "S3CRET" not in str(caught.value)


class TestTime:
    """Each waits within its own deadline; the fetch has none of these."""

    async def test_deadline_of_one_does_not_end_the_fetch(self):
        """The others get the token."""
        tokens = Tokens(takes=2.0)
        async with refreshing_session(tokens) as opened:
            patient = asyncio.create_task(opened.get("/"))
            with (
                request_options(response_timeout=1.0),
                pytest.raises(ResponseTimeoutError) as caught,
            ):
                await opened.get("/")
            assert 200 == (await patient).status

        assert "the call had 1.000 s, and waited for a token" == str(caught.value)
        assert is_unprocessed(caught.value)
        assert 1 == tokens.asked

    async def test_deadline_of_the_first_is_not_that_of_the_fetch(self):
        """Though the fetch began for it."""
        tokens = Tokens(takes=2.0)
        async with refreshing_session(tokens) as opened:
            with request_options(response_timeout=1.0):
                first = asyncio.create_task(opened.get("/"))
            await asyncio.sleep(0.5)
            assert [200] == await outcomes(opened, 1)
            with pytest.raises(ResponseTimeoutError):
                await first

        assert 1 == tokens.asked

    async def test_attempt_timeout_cuts_the_wait(self):
        """The attempt failed, and the next one may have more luck."""
        tokens = Tokens(takes=2.0)
        row = retrying(RetryStrategy.never(), attempt_timeout=1.0)
        async with refreshing_session(tokens, row) as opened:
            with pytest.raises(AttemptTimeoutError) as caught:
                await opened.get("/")

        assert "attempt 1 had 1.000 s, and waited for a token" == str(caught.value)

    async def test_deadline_that_is_lifted_meanwhile_has_passed(self):
        """The wait began with it, as a request would have."""

        @client_decorator
        async def lift(delegate, ctx, request):
            asyncio.get_running_loop().call_later(0.5, ctx.clear_response_timeout)
            return await delegate.execute(ctx, request)

        async with refreshing_session(Tokens(takes=2.0), lift, timeout=1.0) as opened:
            with pytest.raises(TimeoutError) as caught:
                await opened.get("/")

        assert type(caught.value) is TimeoutError

    async def test_timeout_of_the_fetch_is_no_limit_of_the_call(self):
        """It is raised as it is."""
        async with refreshing_session(Tokens(TimeoutError("slow"))) as opened:
            with pytest.raises(TimeoutError, match="slow") as caught:
                await opened.get("/")

        assert type(caught.value) is TimeoutError

    async def test_cancelled_waiter_leaves_the_fetch_to_the_others(self):
        """Though it was the first."""
        tokens = Tokens()
        async with refreshing_session(tokens) as opened:
            first = asyncio.create_task(opened.get("/"))
            others = [asyncio.create_task(opened.get("/")) for _ in range(3)]
            await asyncio.sleep(0.5)
            first.cancel()
            got = [(await each).status for each in others]

        assert first.cancelled()
        assert [200] * 3 == got
        assert 1 == tokens.asked

    async def test_fetch_ends_with_the_last_who_waits(self):
        """One that hangs is given up, and the next call begins another."""
        tokens = Tokens(takes=1e6)
        async with refreshing_session(tokens) as opened:
            with request_options(response_timeout=1.0):
                assert [ResponseTimeoutError] * 2 == await outcomes(opened, 2)
            tokens.takes = 0.5
            assert [200] == await outcomes(opened, 1)
            assert 1 == len(asyncio.all_tasks())

        assert 2 == tokens.asked

    async def test_fetch_that_goes_on_when_cancelled_is_forgotten(self):
        """Its token is none that anybody waits for; its failure neither."""
        ends = [ValueError("late"), None, None]

        async def fetch():
            end = ends.pop(0)
            try:
                await asyncio.sleep(1.0)
            except asyncio.CancelledError:
                await asyncio.sleep(1.0)
                if end is not None:
                    raise end from None
                return "late"
            return "new"

        transport = ScriptedTransport([200])
        row = RefreshingClient.new_decorator(fetch)
        async with session(transport, row, base_url=BASE) as opened:
            for _ in range(2):
                with request_options(response_timeout=0.5):
                    assert [ResponseTimeoutError] == await outcomes(opened, 1)
            assert [200] == await outcomes(opened, 1)
            await asyncio.sleep(3.0)

        assert ["Bearer new"] == sent(transport)

    async def test_fetch_has_nothing_of_the_first_caller(self):
        """Neither its options nor its captures nor its place in an operation."""
        api = ScriptedTransport([200])
        auth = ScriptedTransport([503, 503, 200, {}])
        opened_for_tokens = session(auth, retrying(SAFELY))

        async def fetch():
            async with opened_for_tokens.post(URL, headers={"Idempotency-Key": "1"}):
                return "t"

        row = RefreshingClient.new_decorator(fetch)
        opened = session(api, row, base_url=BASE)

        @rpc(response_timeout=50.0)
        async def operation():
            with request_options(retry=RetryConfig.no_retry()), capture_logs() as logs:
                response = await opened.get("/")
            return response.status, logs

        async with opened_for_tokens, opened:
            status, logs = await operation()

        assert 200 == status
        assert ["/"] == [log.request_url.path for log in logs]
        assert 3 == len(auth.requests)


class TestSameSession:
    """The fetch may use the session that it is for."""

    @CHAINS
    async def test_its_requests_need_no_token(self, between):
        """They go out without one, wait for nothing, and their 401 fetches none."""
        statuses = []

        def answer(ctx, request):
            if request.url.path == "/token":
                assert "Authorization" not in request.headers
                return (200, "t") if len(statuses) else 401
            return 200 if request.headers["Authorization"] == "Bearer t" else 401

        async def fetch():
            async with opened.post("/token") as response:
                statuses.append(response.status)
            async with opened.post("/token") as response:
                return await response.text()

        row = (
            *between,
            RefreshingClient.new_decorator(fetch),
            *between,
            retrying(SAFELY),
        )
        opened = session([answer] * 20, *row, base_url=BASE)
        async with opened, asyncio.timeout(10.0):
            assert [200] * 5 == await outcomes(opened, 5)

        assert [401] == statuses

    async def test_fetch_of_another_that_needs_this_one(self):
        """Two whose fetches use the session of the other do not wait for both."""

        async def fetch_a():
            async with b.get("/"):
                return "a"

        async def fetch_b():
            async with a.get("/"):
                return "b"

        a = session([200] * 9, RefreshingClient.new_decorator(fetch_a), base_url=BASE)
        b = session([200] * 9, RefreshingClient.new_decorator(fetch_b), base_url=BASE)
        async with a, b, asyncio.timeout(10.0):
            assert 200 == (await a.get("/")).status

    async def test_task_that_outlives_the_fetch_gets_tokens(self):
        """It is part of it no longer."""
        tasks = []

        async def later():
            await asyncio.sleep(1.0)
            return await opened.get("/later")

        async def fetch():
            tasks.append(asyncio.create_task(later()))
            return "t"

        transport = ScriptedTransport([200] * 2)
        row = RefreshingClient.new_decorator(fetch)
        opened = session(transport, row, base_url=BASE)
        async with opened:
            await opened.get("/")
            await tasks[0]

        assert ["Bearer t", "Bearer t"] == sent(transport)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
class TestOwnCredentials:
    """Whoever brings credentials gets no token, and no fetch."""

    @pytest.mark.parametrize(
        ("settings", "url", "options"),
        [
            ({}, "/", {"headers": {"authorization": "mine"}}),
            ({}, "/", {"auth": AUTH}),
            ({}, "http://me:pw@localhost/", {}),
            ({"headers": {"Authorization": "mine"}}, "/", {}),
            ({"auth": AUTH}, "/", {}),
        ],
    )
    async def test_they_win(self, settings, url, options):
        """Of the request, the URL or the session; their 401 is the caller's."""
        tokens = Tokens()
        async with refreshing_session(tokens, answers=[401], **settings) as opened:
            response = await opened.get(url, **options)

        assert 401 == response.status
        assert 0 == tokens.asked

    async def test_those_of_a_session_go_to_its_own_origin_alone(self):
        """Another host that is named gets the token; without a base, none does."""
        own = {"hosts": ["other.example"]}
        for base, expected in ((BASE, "Bearer token-1"), (None, None)):
            transport = ScriptedTransport([200])
            tokens = Tokens()
            row = tokens.decorator(**own)
            async with session(transport, row, base_url=base, auth=AUTH) as opened:
                await opened.get("https://other.example/")
            assert [expected] == sent(transport)

    async def test_other_header_stands_beside_them(self):
        """Both are refused by aiohttp for ``Authorization`` alone."""
        tokens = Tokens()
        transport = ScriptedTransport([200, 200])
        row = tokens.decorator(header="X-Api-Key", scheme=None)
        async with session(transport, row, base_url=BASE, auth=AUTH) as opened:
            await opened.get("/")
            await opened.get("/", headers={"x-api-key": "mine"})

        assert ["token-1", "mine"] == sent(transport, "X-Api-Key")

    async def test_context_made_by_hand_has_no_session(self):
        """A client is tested alone, too."""
        tokens = Tokens()
        client = tokens.decorator(hosts=["localhost"])(ScriptedTransport([200]))

        @client_decorator
        async def alone(delegate, ctx, request):
            return await client.execute(ctx, request)

        async with session([], alone, base_url=BASE) as opened:
            assert 200 == (await opened.get("/")).status


class TestStrangers:
    """Servers that are not the session's own get no token."""

    async def test_other_origin_gets_none(self):
        """Its 401 fetches none."""
        tokens = Tokens()
        transport = ScriptedTransport([401])
        async with refreshing_session(tokens, answers=transport) as opened:
            assert 401 == (await opened.get("http://other.example/")).status

        assert [None] == sent(transport)
        assert 0 == tokens.asked

    async def test_group_gets_tokens(self):
        """One for each of its endpoints; a second request stays at the endpoint."""
        group = EndpointGroup.of("http://a.example", "http://b.example")
        for outside in ((), (retrying(SAFELY),)):
            tokens = Tokens()
            row = outside
            async with refreshing_session(tokens, *row, base_url=group) as opened:
                assert [200] * 4 == await outcomes(opened, 4)
                tokens.expire()
                response = await opened.get("/")
                log = RequestLog.of(response)
            assert 200 == response.status
            if outside:
                first, second = log.children
                assert first.endpoint == second.endpoint
            assert [0, 0] == [each.in_flight for each in group.states.values()]

    async def test_401_of_an_endpoint_that_is_not_named_is_the_caller_s(self):
        """It is a stranger, though of the group."""
        group = EndpointGroup.of("http://a.example")
        own = {"hosts": ["http://b.example"]}
        # Outside of retries the endpoint is chosen after the token was fetched.
        for inside, asked in (((), 0), ((retrying(SAFELY),), 1)):
            tokens = Tokens()
            async with refreshing_session(
                tokens, inside=inside, answers=[401], base_url=group, own=own
            ) as opened:
                assert 401 == (await opened.get("/")).status
            assert asked == tokens.asked


class TestBodies:
    """What cannot be sent twice is not."""

    async def test_body_that_is_spent_gets_its_401(self):
        """The next call fetches a token first."""
        tokens = Tokens()

        async def chunks():
            yield b"tea"

        async with refreshing_session(tokens) as opened:
            await opened.get("/")
            tokens.expire()
            response = await opened.post("/", data=chunks())
            assert 401 == response.status
            assert [200] == await outcomes(opened, 1)
            assert 3 == tokens.asked

    @pytest.mark.parametrize("body", [{"json": {"tea": 1}}, {"data": b"tea"}])
    async def test_body_in_memory_is_sent_again(self, body):
        """A file too."""
        tokens = Tokens()
        async with refreshing_session(tokens) as opened:
            await opened.get("/")
            tokens.expire()
            assert 200 == (await opened.post("/", **body)).status
            tokens.expire()
            assert 200 == (await opened.post("/", data=io.BytesIO(b"tea"))).status


class TestLog:
    """Inside retries each request has a log; no retry is counted."""

    async def log(self, *outside, inside=(), **settings):
        tokens = Tokens(takes=0.5)
        async with refreshing_session(tokens, *outside, inside=inside) as opened:
            await opened.get("/")
            tokens.expire()
            async with opened.get("/", **settings) as response:
                return RequestLog.of(response)

    @CHAINS
    async def test_each_request_is_shown(self, between):
        """The first one with its 401 and the wait for the token."""
        log = await self.log(*between, retrying(SAFELY), inside=between)

        first, second = log.children
        assert (401, 0.5, "token") == (
            first.response_status,
            first.delay,
            first.delay_source,
        )
        assert (200, None) == (second.response_status, second.delay)
        assert (2, 200) == (log.total_attempts, log.response_status)
        assert "Bearer token-3" == second.request_headers["Authorization"]
        assert "token-" not in log.render() + str(log.to_dict())
        assert (
            "401 Unauthorized   0.000 s   then waited 0.500 s (token)" in log.render()
        )

    async def test_no_retry_is_used_up(self):
        """Two attempts may each have a 401 of their own."""
        tokens = Tokens(takes=0.5)
        seen = []

        @client_decorator
        async def numbers(delegate, ctx, request):
            seen.append(ctx.attempt)
            return await delegate.execute(ctx, request)

        answers = [200, 401, 503, 401, 200]
        row = retrying(SAFELY, max_total_attempts=2)
        async with refreshing_session(
            tokens, numbers, row, inside=(numbers,), answers=answers
        ) as opened:
            await opened.get("/")
            seen.clear()
            response = await opened.get("/")
            log = RequestLog.of(response)

        assert 200 == response.status
        assert [1, 1, 1, 2, 2, 2] == seen
        assert 4 == log.total_attempts
        counts = [
            each.request_headers.get("armeria-retry-count") for each in log.children
        ]
        assert [None, None, "1", "1"] == counts

    async def test_outside_retries_the_call_goes_through_them_twice(self):
        """All attempts are children of the one call."""
        tokens = Tokens(takes=0.5)
        answers = [200, 503, 401, 503, 200]
        transport = ScriptedTransport(answers)
        row = (retrying(SAFELY), tokens.decorator())
        async with session(transport, *row, base_url=BASE) as opened:
            await opened.get("/")
            response = await opened.get("/")
            log = RequestLog.of(response)

        assert [503, 401, 503, 200] == [each.response_status for each in log.children]
        assert 200 == log.response_status
        tokens = sent(transport)
        assert ["Bearer token-1"] * 3 + ["Bearer token-2"] * 2 == tokens

    async def test_without_retries_there_is_one_log(self):
        """It shows the last answer."""
        log = await self.log()

        assert () == log.children
        assert (1, 200) == (log.total_attempts, log.response_status)

    async def test_hedges_refresh_too(self):
        """Each request has its log, one of them is the hedge."""
        tokens = Tokens(takes=0.1)
        answers = [
            200,
            after(1.0, 401),
            after(1.0, 401),
            after(0.2, 200),
            after(9, 200),
        ]
        row = (HedgingClient.new_decorator(0.5), retrying(SAFELY))
        async with refreshing_session(tokens, *row, answers=answers) as opened:
            await opened.get("/")
            response = await opened.get("/")
            log = RequestLog.of(response)

        assert 200 == response.status
        assert [401, 200] == [
            each.response_status for each in log.children if not each.is_hedge
        ]

    async def test_second_failure_may_have_been_processed(self):
        """The server has answered the first request."""
        answers = [200, 401, refused()]
        row = retrying(RetryStrategy.never())
        async with refreshing_session(Tokens(), row, answers=answers) as opened:
            await opened.get("/")
            with pytest.raises(aiohttp.ClientConnectorError) as caught:
                await opened.post("/")

        assert not is_unprocessed(caught.value)

    async def test_cancelled_while_it_waits_for_the_second_token(self):
        """The 401 is the last that is known."""
        tokens = Tokens()
        with capture_logs() as logs:
            async with refreshing_session(tokens, retrying(SAFELY)) as opened:
                await opened.get("/")
                tokens.expire()
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.5):
                        await opened.get("/")

        (only,) = logs[1].children
        assert 401 == only.response_status
        assert "cancelled" == logs[1].stop_reason

    async def test_custom_header_is_hidden(self):
        """It is a secret whatever it is called."""
        tokens = Tokens()
        row = (tokens.decorator(header="X-Shop", scheme=None), retrying(SAFELY))
        log = await log_of(session([200], *row, base_url=BASE), "/")

        assert "token-1" == log.children[0].request_headers["X-Shop"]
        assert "token-1" not in str(log.to_dict())

    async def test_lines_are_written_once(self, caplog):
        """A logging client around it sees one request."""
        caplog.set_level("DEBUG")
        log = await self.log(LoggingClient.new_decorator())

        assert 200 == log.response_status
        assert 4 == len(caplog.records)


class TestSettings:
    """What can be chosen, and what is refused."""

    async def test_statuses_are_those_named(self):
        """One that is not is the caller's."""
        for status, asked in ((403, 2), (401, 1)):
            tokens = Tokens()
            answers = [200, status, 200]
            async with refreshing_session(
                tokens, answers=answers, own={"on": [403]}
            ) as opened:
                await opened.get("/")
                await opened.get("/")
            assert asked == tokens.asked

    async def test_scheme_may_be_another_or_none(self):
        """The word before the token."""
        for scheme, expected in (("Token", "Token token-1"), (None, "token-1")):
            transport = ScriptedTransport([200])
            own = {"scheme": scheme}
            async with refreshing_session(
                Tokens(), answers=transport, own=own
            ) as opened:
                await opened.get("/")
            assert [expected] == sent(transport)

    @pytest.mark.parametrize(
        "fetch", [None, "token", 7, lambda user: user, int.from_bytes]
    )
    def test_fetch_takes_no_arguments(self, fetch):
        """It is a function."""
        expected = "an async function without arguments"
        with pytest.raises(
            ValueError, match=rf"\Afetch: .* \(expected: {expected}\)\Z"
        ):
            RefreshingClient.new_decorator(fetch)

    def test_fetch_is_not_called_yet(self):
        """A coroutine runs once; it is closed, so nobody warns of it."""
        with pytest.raises(ValueError, match=r"\Afetch: "):
            RefreshingClient.new_decorator(Tokens().fetch())

    def test_fetch_that_does_not_tell_its_arguments_is_taken(self):
        """Some that are written in C."""
        assert RefreshingClient.new_decorator(dict)

    @pytest.mark.parametrize("header", ["", "X Key", "X\r\nY", None])
    def test_header_is_the_name_of_one(self, header):
        """No blank and no line end."""
        with bad_argument("header", header, "a header name"):
            Tokens().decorator(header=header)

    @pytest.mark.parametrize("scheme", ["", "Bearer ", "Be\narer", 7])
    def test_scheme_is_a_word(self, scheme):
        """The blank after it is ours."""
        with bad_argument("scheme", scheme, "a word such as 'Bearer', or None"):
            Tokens().decorator(scheme=scheme)

    @pytest.mark.parametrize("on", [401, "401", [200], [600], [None]])
    def test_statuses_are_those_of_failures(self, on):
        """A success refuses no token."""
        with bad_argument("on", on, "a collection of integers in [400, 599]"):
            Tokens().decorator(on=on)

    def test_one_status_is_needed(self):
        """Or no token would ever be refreshed."""
        with bad_argument("on", [], "at least one status"):
            Tokens().decorator(on=[])

    async def test_without_an_origin_hosts_are_needed(self):
        """Or nobody would know who is a stranger."""
        expected = (
            "the hosts that RefreshingClient acts on, since the session has neither"
            " base_url nor a group"
        )
        with bad_argument("hosts", None, expected):
            decorated(SessionBuilder(), Tokens().decorator()).build()

    def test_functions_are_refused(self):
        """They have no headers."""

        async def function():
            """Do nothing."""

        with bad_argument("decorator", "RefreshingClient", "a decorator for functions"):
            rpc(Tokens().decorator())(function)

    async def test_it_is_found_and_described(self):
        """With its settings; no token is shown."""
        tokens = Tokens()
        async with session([], tokens.decorator(hosts=["a.example"])) as opened:
            found = unwrap(opened, RefreshingClient)
        text = (
            "RefreshingClient(fetch=Tokens.fetch, on=[401], header='Authorization',"
            " scheme='Bearer', hosts=('a.example',))"
        )

        assert text == found.describe()
        assert "scheme='Bearer')" in chain([], tokens.decorator()).describe()

    def test_arguments_of_a_partial_are_not_shown(self):
        """They may be the password that the fetch needs."""
        fetch = functools.partial(Tokens.fetch, "S3CRET")
        row = RefreshingClient.new_decorator(fetch)

        assert "fetch=partial," in chain([], row).describe()


async def test_wait_is_shorter_than_the_backoff_of_a_retry():
    """The second request goes out as soon as the token is there."""
    tokens = Tokens(takes=0.25)
    async with refreshing_session(
        tokens, retrying(RetryStrategy.failsafe(Backoff.fixed(9.0)))
    ) as opened:
        await opened.get("/")
        tokens.expire()
        before = now()
        await opened.get("/")

    assert 0.25 == now() - before


def test_tokens_belong_to_a_loop():
    """One decorator in two loops: each has a token of its own."""
    tokens = Tokens(takes=0.0)
    row = tokens.decorator()

    async def main():
        async with session([tokens.answer] * 2, row, base_url=BASE) as opened:
            return await outcomes(opened, 2)

    assert [[200, 200], [200, 200]] == [asyncio.run(main()) for _ in range(2)]
    assert 2 == tokens.asked


async def test_key_and_token_of_one_call():
    """Each has its header, and both may be bound."""
    tokens = Tokens()
    transport = ScriptedTransport([200])
    async with session(
        transport,
        tokens.decorator(),
        retrying(SAFELY),
        IdempotencyKeyClient.new_decorator(),
        base_url=BASE,
    ) as opened:
        await opened.post("/")

    assert ["Bearer token-1"] == sent(transport)
    assert [None] != sent(transport, "Idempotency-Key")
