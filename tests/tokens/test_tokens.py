"""Tokens: one fetch for all who need it, how long it may take, how it fails."""

import asyncio
import gc
import re
import traceback
import weakref

import aiohttp
import pytest
from chains import SAFELY, URL, after, now, pass_on, retrying, session
from token_servers import BASE, Tokens, outcomes, refreshing_session, sent

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRule,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RateLimit,
    RateLimitingClient,
    RefreshingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryConfig,
    RetrySafety,
    RetryStrategy,
    capture_logs,
    client_decorator,
    is_unprocessed,
    request_options,
    retry_safety,
    rpc,
)
from aioretry_smithy.testing import ScriptedTransport

CHAINS = pytest.mark.parametrize("between", [(), (pass_on,)], ids=["own", "foreign"])


class TestSingleFlight:
    """One fetch for all who need a token at the same time."""

    @CHAINS
    async def test_calls_at_once_fetch_once(self, between):
        """Before the first request, and when the token has expired."""
        tokens = Tokens()
        added = (*between, retrying(SAFELY), *between)
        async with refreshing_session(tokens, *added, inside=between) as opened:
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

        added = RefreshingClient.new_decorator(fetch)
        async with session([401] * 20, added, base_url=BASE) as opened:
            assert [401] * 10 == await outcomes(opened, 10)

        assert 2 == len(asked)

    async def test_sessions_of_one_decorator_share_the_token(self):
        """Also one that is being fetched."""
        tokens = Tokens()
        added = tokens.decorator()
        async with (
            session([tokens.answer] * 9, added, base_url=BASE) as one,
            session([tokens.answer] * 9, added, base_url=BASE) as other,
        ):
            got = await asyncio.gather(one.get("/"), other.get("/"))

        assert [200, 200] == [each.status for each in got]
        assert 1 == tokens.asked

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
        added = RefreshingClient.new_decorator(fetch)
        async with session([200, 401, 200, 200], added, base_url=BASE) as opened:
            for _ in range(3):
                assert [200] == await outcomes(opened, 1)

        assert 2 == len(asked)


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

        added = (
            *between,
            RefreshingClient.new_decorator(fetch),
            *between,
            retrying(SAFELY),
        )
        opened = session([answer] * 20, *added, base_url=BASE)
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
        added = RefreshingClient.new_decorator(fetch)
        opened = session(transport, added, base_url=BASE)
        async with opened:
            await opened.get("/")
            await tasks[0]

        assert ["Bearer t", "Bearer t"] == sent(transport)


def throttled():
    """Make the error for an answer that asks for fewer requests."""
    headers = {"Retry-After": "30"}
    return aiohttp.ClientResponseError(None, (), status=503, headers=headers)


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

        added = RefreshingClient.new_decorator(fetch), retrying(SAFELY)
        async with session([200] * 9, *added, base_url=BASE) as opened:
            gc.collect()
            assert [OwnError] * 3 == await outcomes(opened, 3)
            with request_options(response_timeout=0.5):
                assert [ResponseTimeoutError] * 2 == await outcomes(opened, 2)
            await asyncio.sleep(1.0)
            assert {None} == {each() for each in alive}
            assert 0 == gc.collect()

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

    @pytest.mark.parametrize("strategy", [None, CircuitBreakerRule(statuses=[503])])
    async def test_answer_of_the_token_service_counts_for_no_circuit(self, strategy):
        """It is raised by the fetch, and is no word of the server that is called."""
        tokens = Tokens(*(throttled() for _ in range(3)))
        breaker = CircuitBreaker("orders", consecutive_failures=1)
        breaking = CircuitBreakerClient.new_decorator(breaker, strategy)
        async with refreshing_session(tokens, breaking) as opened:
            for _ in range(3):
                assert [503] == await outcomes(opened, 1)

        assert 0 == breaker.event_count.total
        assert CircuitState.CLOSED is breaker.state

    async def test_answer_of_the_token_service_teaches_no_limit(self):
        """Neither how many may be in flight, nor when the next may go out."""
        tokens = Tokens(throttled())
        limit = ConcurrencyLimit.aimd(initial=10)
        limits = (
            ConcurrencyLimitingClient.new_decorator(limit),
            RateLimitingClient.new_decorator(RateLimit.from_headers()),
        )
        async with refreshing_session(tokens, *limits) as opened:
            assert [503] == await outcomes(opened, 1)
            assert [200] == await outcomes(opened, 1)
            assert 2.0 == now()

        assert 10 == limit.limit

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

        added = RefreshingClient.new_decorator(fetch), retrying(SAFELY)
        with capture_logs() as logs:
            async with session([], *added, base_url=BASE) as opened:
                with pytest.raises(TypeError) as caught:
                    await opened.get("/")

        assert f"fetch gave {what} (expected: a text that" in str(caught.value)
        assert "S3CRET" not in f"{caught.value}{logs[0].render()}"
        assert 1 == logs[0].total_attempts

    @pytest.mark.parametrize("given", ["Bearer S3CRET", "bearer S3CRET"])
    async def test_scheme_is_not_put_before_itself(self, given):
        """A server would refuse "Bearer Bearer", and the call end with a 401."""

        async def fetch():
            return given

        async with session(
            [], RefreshingClient.new_decorator(fetch), base_url=BASE
        ) as opened:
            with pytest.raises(TypeError) as caught:
                await opened.get("/")

        expected = r"fetch gave a text \(expected: without 'Bearer', which is put"
        assert re.search(expected, str(caught.value))
        assert "S3CRET" not in str(caught.value)

    async def test_whole_value_may_have_a_scheme(self):
        """With scheme=None nothing is put before it."""

        async def fetch():
            return "Bearer t"

        whole = RefreshingClient.new_decorator(fetch, scheme=None)
        transport = ScriptedTransport([200])
        async with session(transport, whole, base_url=BASE) as opened:
            await opened.get("/")

        assert ["Bearer t"] == sent(transport)


class TestTime:
    """Each waits within its own deadline; the fetch has none of these."""

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
