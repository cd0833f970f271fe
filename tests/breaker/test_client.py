"""The decorator that asks a circuit breaker before each request."""

import asyncio
import math
from functools import partial

import aiohttp
import pytest

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerListener,
    CircuitBreakerStrategy,
    CircuitState,
    EventCount,
    FailFastError,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    client_decorator,
    new_response,
    unwrap,
)
from aioretry_smithy.testing import ScriptedTransport

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState
URL = "http://localhost/orders"
RETRYING = RetryingClient.new_decorator(RetryStrategy.failsafe())
PER_KEY = [
    CircuitBreakerClient.new_per_host_decorator,
    CircuitBreakerClient.new_per_method_decorator,
    CircuitBreakerClient.new_per_host_and_method_decorator,
    CircuitBreakerClient.new_per_path_decorator,
]


class Verdict(CircuitBreakerStrategy):
    """A strategy that answers what it was made with, and keeps what it was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    def should_report_as_success(self, ctx, cause):
        self.asked.append((ctx.log.response_status, ctx.log.response_cause, cause))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


class AsyncVerdict(Verdict):
    """The same, after a while."""

    async def should_report_as_success(self, ctx, cause):
        await asyncio.sleep(1.0)
        return super().should_report_as_success(ctx, cause)


class Scripted:
    """A session that talks to a script through a chain, and its transport."""

    def __init__(self, answers, *decorators):
        self.transport = ScriptedTransport(answers)
        self.builder = SessionBuilder().decorator(self.transport)
        for decorator in decorators:
            self.builder.decorator(decorator)

    async def __aenter__(self):
        self.session = self.builder.build()
        return self

    async def __aexit__(self, *error):
        await self.session.close()

    async def get(self, url=URL):
        """Send a request and return the status, or what was raised."""
        try:
            async with self.session.get(url) as response:
                return response.status
        except aiohttp.ClientError as error:
            return type(error)

    @property
    def sent(self):
        """How many requests reached the transport."""
        return len(self.transport.requests)


@pytest.fixture
def breaker():
    """A circuit breaker that opens at the first failure, for 10 seconds."""
    return CircuitBreaker("orders", minimum_request_threshold=1)


def release_of(response, releases):
    """Note when a response is closed."""
    close = response.close

    def noting_close():
        releases.append(response)
        close()

    response.close = noting_close
    return response


def responding(releases, status=200):
    """Return an answer whose closing is noted."""
    return lambda ctx, request: release_of(new_response(request, status), releases)


async def hang(ctx, request):
    """Be a server that never answers."""
    await asyncio.sleep(math.inf)


class TestReports:
    """What the circuit breaker hears of a request."""

    @pytest.mark.parametrize(
        ("answer", "count"),
        [
            (200, EventCount(1, 0)),
            (404, EventCount(1, 0)),
            (aiohttp.InvalidURL("http://"), EventCount(0, 0)),
        ],
    )
    async def test_it_hears_of_each_outcome(self, breaker, answer, count):
        """A success counts as such; what says nothing is not counted."""
        decorator = CircuitBreakerClient.new_decorator(breaker)
        async with Scripted([answer], decorator) as scripted:
            await scripted.get()

        assert count == breaker.event_count

    @pytest.mark.parametrize("answer", [500, TimeoutError()])
    async def test_a_failure_opens_the_circuit(self, breaker, answer):
        """A server error or an exception is a failure, and reaches the caller."""
        decorator = CircuitBreakerClient.new_decorator(breaker)
        async with Scripted([answer], decorator) as scripted:
            if answer == 500:
                assert 500 == await scripted.get()
            else:
                with pytest.raises(TimeoutError) as caught:
                    await scripted.get()
                assert answer is caught.value

        assert OPEN is breaker.state

    async def test_a_made_up_response_is_judged_by_its_own_status(self, breaker):
        """A decorator in between may change the outcome; that is what counts."""

        @client_decorator
        async def apology(delegate, ctx, request):
            await delegate.execute(ctx, request)
            return new_response(request, 200)

        decorator = CircuitBreakerClient.new_decorator(breaker)
        async with Scripted([503], apology, decorator) as scripted:
            assert 200 == await scripted.get()

        assert EventCount(success=1, failure=0) == breaker.event_count

    async def test_a_made_up_failure_is_what_the_strategy_sees(self, breaker):
        """A decorator that raises after a response has failed."""
        strategy = Verdict(False)

        @client_decorator
        async def strict(delegate, ctx, request):
            await delegate.execute(ctx, request)
            raise aiohttp.ClientPayloadError("no good")

        decorator = CircuitBreakerClient.new_decorator(breaker, strategy)
        async with Scripted([200], strict, decorator) as scripted:
            assert aiohttp.ClientPayloadError is await scripted.get()

        ((status, logged, cause),) = strategy.asked
        assert None is status
        assert cause is logged
        assert OPEN is breaker.state

    async def test_a_decorator_that_returns_nothing_does_not_keep_the_trial(
        self, breaker
    ):
        """A bug inside the chain is the caller's, and the permit comes back."""

        @client_decorator
        async def forgetful(delegate, ctx, request):
            return None

        breaker.enter_state(HALF_OPEN)
        decorator = CircuitBreakerClient.new_decorator(breaker)
        async with Scripted([], forgetful, decorator) as scripted:
            with pytest.raises(TypeError, match="response: None"):
                await scripted.get()

        assert breaker.try_request().is_trial

    async def test_the_response_is_handed_on_unread(self, breaker):
        """The caller streams the body himself."""
        decorator = CircuitBreakerClient.new_decorator(breaker)
        async with (
            Scripted([(200, {}, b"orders")], decorator) as scripted,
            scripted.session.get(URL) as response,
        ):
            assert not response.content.at_eof()
            assert b"orders" == await response.read()

    @pytest.mark.parametrize("answer", [200, 500])
    async def test_an_answer_that_comes_too_late_is_ignored(self, breaker, answer):
        """The answer of a request started before a change of state says nothing."""

        @client_decorator
        async def slow(delegate, ctx, request):
            response = await delegate.execute(ctx, request)
            breaker.enter_state(HALF_OPEN)
            return response

        decorator = CircuitBreakerClient.new_decorator(breaker)
        async with Scripted([answer], slow, decorator) as scripted:
            await scripted.get()

        assert HALF_OPEN is breaker.state


class TestStrategy:
    """Verdicts of strategies of one's own."""

    @pytest.mark.parametrize("kind", [Verdict, AsyncVerdict])
    @pytest.mark.parametrize(
        ("answer", "count", "state"),
        [
            (True, EventCount(1, 0), CLOSED),
            (None, EventCount(0, 0), CLOSED),
            (False, EventCount(0, 0), OPEN),
        ],
    )
    async def test_a_verdict_counts(self, breaker, kind, answer, count, state):
        """Plain or async: True is a success, False a failure, None not counted."""
        strategy = kind(answer)
        decorator = CircuitBreakerClient.new_decorator(breaker, strategy)
        async with Scripted([404], decorator) as scripted:
            assert 404 == await scripted.get()

        assert count == breaker.event_count
        assert state is breaker.state
        assert [(404, None, None)] == strategy.asked

    @pytest.mark.parametrize("kind", [Verdict, AsyncVerdict])
    async def test_an_exception_is_shown_to_the_strategy(self, breaker, kind):
        """A strategy may take a failure for a success, the caller gets it still."""
        cause = aiohttp.ServerDisconnectedError()
        strategy = kind(True)
        decorator = CircuitBreakerClient.new_decorator(breaker, strategy)
        async with Scripted([cause], decorator) as scripted:
            with pytest.raises(aiohttp.ServerDisconnectedError) as caught:
                await scripted.session.get(URL)

        assert cause is caught.value
        assert [(None, cause, cause)] == strategy.asked
        assert EventCount(success=1, failure=0) == breaker.event_count

    @pytest.mark.parametrize("kind", [Verdict, AsyncVerdict])
    async def test_an_error_of_the_strategy_goes_to_the_caller(self, breaker, kind):
        """The response is closed, and the trial gives its place back."""
        releases = []
        breaker.enter_state(HALF_OPEN)
        error = LookupError("bug in the strategy")
        decorator = CircuitBreakerClient.new_decorator(breaker, kind(error))
        async with Scripted([responding(releases)], decorator) as scripted:
            with pytest.raises(LookupError) as caught:
                await scripted.session.get(URL)

        assert error is caught.value
        assert 1 == len(releases)
        assert HALF_OPEN is breaker.state
        assert breaker.try_request().is_trial

    @pytest.mark.parametrize("kind", [Verdict, AsyncVerdict])
    async def test_an_error_of_the_strategy_has_the_failure_as_context(
        self, breaker, kind
    ):
        """What the attempt failed with is not lost."""
        breaker.enter_state(HALF_OPEN)
        cause = aiohttp.ServerDisconnectedError()
        decorator = CircuitBreakerClient.new_decorator(breaker, kind(LookupError()))
        async with Scripted([cause], decorator) as scripted:
            with pytest.raises(LookupError) as caught:
                await scripted.session.get(URL)

        assert cause is caught.value.__context__
        assert breaker.try_request().is_trial

    async def test_a_verdict_that_is_none_of_the_three_is_an_error(self, breaker):
        """A strategy that answers something else has a bug, and says so."""
        releases = []
        decorator = CircuitBreakerClient.new_decorator(breaker, Verdict("success"))
        async with Scripted([responding(releases)], decorator) as scripted:
            with pytest.raises(TypeError):
                await scripted.session.get(URL)

        assert 1 == len(releases)
        assert EventCount(success=0, failure=0) == breaker.event_count

    async def test_cancellation_while_the_strategy_thinks_leaves_nothing(self, breaker):
        """The response is closed and nothing is counted."""
        releases = []
        breaker.enter_state(HALF_OPEN)
        decorator = CircuitBreakerClient.new_decorator(breaker, AsyncVerdict(True))
        async with Scripted([responding(releases)], decorator) as scripted:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(scripted.session.get(URL), 0.5)

        assert 1 == len(releases)
        assert breaker.try_request().is_trial


class TestRefusal:
    """While the circuit is open."""

    async def test_a_refused_request_fails_fast(self, breaker):
        """Nothing is sent; the error says who refused and for how long."""
        decorator = CircuitBreakerClient.new_decorator(breaker)
        async with Scripted([500], decorator) as scripted:
            await scripted.get()
            await asyncio.sleep(4.0)
            with pytest.raises(FailFastError) as caught:
                await scripted.session.get(URL)

        assert breaker is caught.value.circuit_breaker
        assert 6.0 == caught.value.retry_in
        assert ("circuit breaker 'orders' is open, next trial in 6.000 s") == str(
            caught.value
        )
        assert 1 == scripted.sent
        assert caught.value is RequestLog.of(caught.value).response_cause

    async def test_a_forced_open_circuit_says_no_time(self, breaker):
        """Nobody knows when somebody will enter another state."""
        breaker.enter_state(FORCED_OPEN)
        decorator = CircuitBreakerClient.new_decorator(breaker)
        async with Scripted([], decorator) as scripted:
            with pytest.raises(FailFastError) as caught:
                await scripted.session.get(URL)

        assert None is caught.value.retry_in

    async def test_the_circuit_recovers_by_a_trial(self, breaker):
        """After the open window one request is sent, and its success closes."""
        decorator = CircuitBreakerClient.new_decorator(breaker)
        async with Scripted([500, 200, 200], decorator) as scripted:
            await scripted.get()
            await asyncio.sleep(10.0)

            assert 200 == await scripted.get()
            assert CLOSED is breaker.state
            assert 200 == await scripted.get()

    async def test_one_of_a_hundred_is_the_trial(self, breaker):
        """A herd that waits for the open window sends one request."""

        async def slowly(ctx, request):
            await asyncio.sleep(1.0)
            return 200

        decorator = CircuitBreakerClient.new_decorator(breaker)
        async with Scripted([500, slowly], decorator) as scripted:
            await scripted.get()
            await asyncio.sleep(10.0)
            results = await asyncio.gather(*(scripted.get() for _ in range(100)))

        assert 1 == results.count(200)
        assert 99 == results.count(FailFastError)
        assert CLOSED is breaker.state

    async def test_a_cancelled_trial_gives_its_place_back(self, breaker):
        """The next request is the trial at once, and decides."""
        decorator = CircuitBreakerClient.new_decorator(breaker)
        async with Scripted([500, hang, 200], decorator) as scripted:
            await scripted.get()
            await asyncio.sleep(10.0)
            trial = asyncio.create_task(scripted.session.get(URL))
            await asyncio.sleep(1.0)
            assert FailFastError is await scripted.get()

            trial.cancel()
            with pytest.raises(asyncio.CancelledError):
                await trial

            assert HALF_OPEN is breaker.state
            assert 200 == await scripted.get()
            assert CLOSED is breaker.state

    async def test_cancelled_requests_do_not_open_the_circuit(self, breaker):
        """Callers in a hurry say nothing about the server."""
        decorator = CircuitBreakerClient.new_decorator(breaker)
        async with Scripted([hang] * 20, decorator) as scripted:
            for _ in range(20):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(scripted.session.get(URL), 0.1)

        assert CLOSED is breaker.state
        assert EventCount(success=0, failure=0) == breaker.event_count


class TestFallback:
    """What is answered in place of a refused request."""

    async def test_a_refused_request_gets_the_fallback(self, breaker):
        """The fallback sees the context and the request, and its response is logged."""
        seen = []

        async def fallback(ctx, request):
            seen.append((ctx.request, request))
            return new_response(request, 203)

        breaker.enter_state(OPEN)
        decorator = CircuitBreakerClient.new_decorator(breaker, fallback=fallback)
        async with (
            Scripted([], decorator) as scripted,
            scripted.session.get(URL) as response,
        ):
            assert 203 == response.status
            assert 203 == RequestLog.of(response).response_status

        ((root_request, request),) = seen
        assert root_request is request
        assert "GET" == request.method
        assert OPEN is breaker.state

    async def test_a_fallback_may_be_plain(self, breaker):
        """What has nothing to wait for need not be a coroutine."""

        def fallback(ctx, request):
            return new_response(request, 203)

        breaker.enter_state(OPEN)
        decorator = CircuitBreakerClient.new_decorator(breaker, fallback=fallback)
        async with Scripted([], decorator) as scripted:
            assert 203 == await scripted.get()

    @pytest.mark.parametrize("outside", [[], [RETRYING]], ids=["call", "attempt"])
    async def test_a_fallback_sees_the_refusal(self, breaker, outside):
        """In the log while it runs; afterwards the log has its response alone."""
        seen = []

        def fallback(ctx, request):
            seen.append(ctx.log.response_cause)
            return new_response(request, 203)

        breaker.enter_state(OPEN)
        decorator = CircuitBreakerClient.new_decorator(breaker, fallback=fallback)
        async with (
            Scripted([], decorator, *outside) as scripted,
            scripted.session.get(URL) as response,
        ):
            log = RequestLog.of(response)

        (cause,) = seen
        assert type(cause) is FailFastError
        assert breaker is cause.circuit_breaker
        assert 10.0 == cause.retry_in
        assert (203, None) == (log.response_status, log.response_cause)

    async def test_a_failure_gets_no_fallback(self, breaker):
        """Only what the open circuit refused is answered by it."""

        async def fallback(ctx, request):
            raise AssertionError("not asked for")

        decorator = CircuitBreakerClient.new_decorator(breaker, fallback=fallback)
        async with Scripted([500], decorator) as scripted:
            assert 500 == await scripted.get()

    async def test_an_error_of_the_fallback_goes_to_the_caller(self, breaker):
        """A fallback has no fallback."""
        error = LookupError("not in the cache")

        async def fallback(ctx, request):
            raise error

        breaker.enter_state(OPEN)
        decorator = CircuitBreakerClient.new_decorator(breaker, fallback=fallback)
        async with Scripted([], decorator) as scripted:
            with pytest.raises(LookupError) as caught:
                await scripted.session.get(URL)

        assert error is caught.value

    async def test_inside_retrying_a_fallback_ends_the_call(self, breaker):
        """The retrying client sees the response of the fallback, and is content."""

        async def fallback(ctx, request):
            return new_response(request, 203)

        retrying = RetryingClient.new_decorator(
            RetryStrategy.failsafe(Backoff.fixed(1.0))
        )
        decorator = CircuitBreakerClient.new_decorator(breaker, fallback=fallback)
        async with Scripted([500], decorator, retrying) as scripted:
            with capture_logs() as logs:
                assert 203 == await scripted.get()

        (log,) = logs
        assert [500, 203] == [child.response_status for child in log.children]


@pytest.mark.parametrize("has_fallback", [True, False])
async def test_a_decorator_outside_finds_the_refusal_in_the_log(breaker, has_fallback):
    """What is made here is logged here, as the leaf does with what it brings."""
    seen = []

    async def fallback(ctx, request):
        return new_response(request, 203)

    @client_decorator
    async def look(delegate, ctx, request):
        try:
            return await delegate.execute(ctx, request)
        finally:
            seen.append((ctx.log.response_status, type(ctx.log.response_cause)))

    breaker.enter_state(OPEN)
    decorator = CircuitBreakerClient.new_decorator(
        breaker, fallback=fallback if has_fallback else None
    )
    async with Scripted([], decorator, look) as scripted:
        await scripted.get()

    assert [(203, type(None)) if has_fallback else (None, FailFastError)] == seen


async def test_a_fallback_finds_the_refusal_in_the_log(breaker):
    """It may say why the circuit is open, and when the next trial is due."""
    seen = []

    async def fallback(ctx, request):
        seen.append(type(ctx.log.response_cause))
        return new_response(request, 203)

    breaker.enter_state(OPEN)
    decorator = CircuitBreakerClient.new_decorator(breaker, fallback=fallback)
    async with Scripted([], decorator) as scripted:
        await scripted.get()

    assert [FailFastError] == seen


@pytest.mark.parametrize("broken", ["factory", "strategy", "fallback"])
async def test_error_in_what_a_client_asks_is_in_the_log(breaker, broken):
    """What the functions of the user's own raise becomes the outcome."""

    def fail(*arguments):
        raise aiohttp.InvalidURL(broken)

    new = CircuitBreakerClient.new_decorator
    decorators = {
        "factory": CircuitBreakerClient.new_per_host_decorator(fail),
        "strategy": new(CircuitBreaker("shop"), Verdict(aiohttp.InvalidURL("x"))),
        "fallback": new(breaker, fallback=fail),
    }
    breaker.enter_state(OPEN)
    async with Scripted([200], decorators[broken]) as scripted:
        with pytest.raises(aiohttp.InvalidURL) as caught:
            await scripted.session.get(URL)

    assert caught.value is RequestLog.of(caught.value).response_cause


async def test_a_request_sent_again_after_a_refusal_is_not_refused(breaker):
    """Telemetry and limiters ask the context, where only the last word counts."""
    seen = []

    @client_decorator
    async def twice(delegate, ctx, request):
        with pytest.raises(FailFastError):
            await delegate.execute(ctx, request)
        seen.append(ctx.log._was_refused)
        breaker.enter_state(CLOSED)
        response = await delegate.execute(ctx, request)
        seen.append(ctx.log._was_refused)
        return response

    breaker.enter_state(OPEN)
    decorator = CircuitBreakerClient.new_decorator(breaker)
    async with Scripted([200], decorator, twice) as scripted:
        await scripted.get()

    assert [True, False] == seen


class TestRetrying:
    """Beside a retrying client."""

    async def test_inside_it_sees_every_attempt(self):
        """The third failing attempt opens the circuit, and the call ends."""
        breaker = CircuitBreaker("orders", minimum_request_threshold=3)
        retrying = RetryingClient.new_decorator(
            RetryStrategy.failsafe(Backoff.fixed(1.0))
        )
        decorator = CircuitBreakerClient.new_decorator(breaker)
        async with Scripted([500] * 3, decorator, retrying) as scripted:
            assert FailFastError is await scripted.get()

        assert 3 == scripted.sent
        assert OPEN is breaker.state

    async def test_outside_it_sees_one_outcome_per_call(self):
        """Attempts that failed on the way to a success are not counted."""
        breaker = CircuitBreaker("orders", minimum_request_threshold=3)
        retrying = RetryingClient.new_decorator(
            RetryStrategy.failsafe(Backoff.fixed(1.0))
        )
        decorator = CircuitBreakerClient.new_decorator(breaker)
        async with Scripted([500, 500, 500, 200], retrying, decorator) as scripted:
            assert 200 == await scripted.get()

        assert EventCount(success=1, failure=0) == breaker.event_count


class TestKeys:
    """Circuit breakers by host and method."""

    @pytest.mark.parametrize(
        ("new_decorator", "keys"),
        [
            (
                CircuitBreakerClient.new_per_host_decorator,
                ["a:80", "b:443"],
            ),
            (
                CircuitBreakerClient.new_per_method_decorator,
                ["GET", "PUT"],
            ),
            (
                CircuitBreakerClient.new_per_host_and_method_decorator,
                ["a:80#GET", "a:80#PUT", "b:443#GET"],
            ),
            (
                CircuitBreakerClient.new_per_path_decorator,
                ["a:80/orders", "b:443/"],
            ),
        ],
    )
    async def test_there_is_one_per_key(self, new_decorator, keys):
        """The factory is called once per key, with the key."""
        made = []

        def factory(key):
            made.append(CircuitBreaker(key))
            return made[-1]

        async with Scripted([200] * 6, new_decorator(factory)) as scripted:
            for _ in range(2):
                await scripted.session.get("http://a/orders?page=1")
                await scripted.session.put("http://A:80/orders")
                await scripted.session.get("https://b/")

        assert keys == [breaker.name for breaker in made]
        assert 6 == sum(breaker.event_count.success for breaker in made)

    @pytest.mark.parametrize("new_decorator", PER_KEY)
    async def test_strategy_and_fallback_are_taken(self, new_decorator):
        """They mean the same whatever the circuit breakers are for."""

        async def cached(ctx, request):
            return new_response(request, 203)

        def factory(key):
            return CircuitBreaker(key, minimum_request_threshold=1)

        decorator = new_decorator(factory, Verdict(False), fallback=cached)
        async with Scripted([200], decorator) as scripted:
            statuses = [await scripted.get() for _ in range(2)]

        assert [200, 203] == statuses

    async def test_a_broken_host_does_not_bother_the_others(self):
        """By default every host has a circuit breaker named for it."""
        decorator = CircuitBreakerClient.new_per_host_decorator()
        async with Scripted([500] * 10 + [200], decorator) as scripted:
            for _ in range(10):
                await scripted.get("http://a/")

            with pytest.raises(FailFastError) as caught:
                await scripted.session.get("http://a/")
            assert "a:80" == caught.value.circuit_breaker.name
            assert 200 == await scripted.get("http://b/")

    async def test_a_broken_path_does_not_bother_the_others(self):
        """Whatever its query, a path has one circuit breaker, found by its key."""
        decorator = CircuitBreakerClient.new_per_path_decorator()
        async with Scripted([500] * 10 + [200], decorator) as scripted:
            for page in range(10):
                await scripted.get(f"http://a/orders?page={page}")

            assert FailFastError is await scripted.get("http://a/orders")
            assert 200 == await scripted.get("http://a/reports")
            client = unwrap(scripted.session, CircuitBreakerClient)
            assert {"a:80/orders": OPEN, "a:80/reports": CLOSED} == {
                key: breaker.state for key, breaker in client.circuit_breakers.items()
            }

    async def test_sessions_share_the_circuit_breakers(self):
        """What one session of a decorator learns, the others know."""

        def factory(key):
            return CircuitBreaker(key, minimum_request_threshold=1)

        decorator = CircuitBreakerClient.new_per_host_decorator(factory)
        async with (
            Scripted([500], decorator) as first,
            Scripted([], decorator) as second,
        ):
            await first.get()

            assert FailFastError is await second.get()

    async def test_two_decorators_share_nothing(self):
        """Each decorator has circuit breakers of its own."""

        def factory(key):
            return CircuitBreaker(key, minimum_request_threshold=1)

        first = CircuitBreakerClient.new_per_host_decorator(factory)
        second = CircuitBreakerClient.new_per_host_decorator(factory)
        async with Scripted([500], first) as one, Scripted([200], second) as other:
            await one.get()

            assert 200 == await other.get()

    @pytest.mark.parametrize(
        "url", ["/orders", "http://", "http://[::1", "mailto:somebody@example.com", 7]
    )
    @pytest.mark.parametrize("new_decorator", PER_KEY)
    async def test_a_bad_url_raises_as_without_a_circuit_breaker(
        self, new_decorator, url
    ):
        """A bad URL is for aiohttp to report, in aiohttp's words."""
        made = []
        session = SessionBuilder().decorator(new_decorator(made.append)).build()
        async with session, aiohttp.ClientSession() as plain:
            with pytest.raises(Exception) as expected:
                await plain.get(url)
            with pytest.raises(Exception) as caught:
                await session.get(url)

        assert expected.type is caught.type
        assert str(expected.value) == str(caught.value)
        assert [] == made

    async def test_an_error_of_the_factory_goes_to_the_caller(self):
        """A bug in the caller's code is not hidden."""

        def factory(key):
            raise LookupError(key)

        decorator = CircuitBreakerClient.new_per_host_decorator(factory)
        async with Scripted([], decorator) as scripted:
            with pytest.raises(LookupError, match="localhost:80"):
                await scripted.session.get(URL)


class TestArguments:
    """What a decorator is made of."""

    @pytest.mark.parametrize(
        ("arguments", "options", "message"),
        [
            (
                ("orders",),
                {},
                "circuit_breaker: 'orders' (expected: a CircuitBreaker)",
            ),
            (
                (CircuitBreaker("orders"), "5xx"),
                {},
                "strategy: '5xx' (expected: a CircuitBreakerStrategy)",
            ),
            (
                (CircuitBreaker("orders"),),
                {"fallback": 203},
                "fallback: 203 (expected: (ctx, request) -> response)",
            ),
        ],
    )
    def test_bad_arguments_are_rejected(self, arguments, options, message):
        """A bad argument is named where the decorator is made."""
        with pytest.raises(ValueError) as caught:
            CircuitBreakerClient.new_decorator(*arguments, **options)

        assert message == str(caught.value)

    @pytest.mark.parametrize("new_decorator", PER_KEY)
    def test_a_factory_is_callable(self, new_decorator):
        """One circuit breaker is no factory of them."""
        breaker = CircuitBreaker("orders")
        with pytest.raises(ValueError) as caught:
            new_decorator(breaker)

        expected = f"factory: {breaker!r} (expected: a callable that takes the key)"
        assert expected == str(caught.value)

    def test_it_describes_itself(self):
        """The chain's description shows the settings in force."""

        async def cached(ctx, request):
            raise NotImplementedError

        breaker = CircuitBreaker("orders")
        one = CircuitBreakerClient.new_decorator(breaker, fallback=cached)
        builder = (
            SessionBuilder()
            .decorator(one)
            .decorator(CircuitBreakerClient.new_per_host_decorator())
        )

        outer, inner, _ = builder.describe().splitlines()

        assert (
            "CircuitBreakerClient(per='host', factory=CircuitBreaker, "
            "strategy=CircuitBreakerStrategy.on_server_error_status())"
        ) == outer
        assert inner.startswith(
            f"  CircuitBreakerClient(circuit_breaker={breaker!r}, "
            "strategy=CircuitBreakerStrategy.on_server_error_status(), fallback="
        )
        assert inner.endswith("cached)")

    @pytest.mark.parametrize(
        ("new_decorator", "per"),
        [
            *zip(
                PER_KEY,
                ["host", "method", "host and method", "host and path"],
                strict=True,
            )
        ],
    )
    def test_it_describes_what_its_circuit_breakers_are_for(self, new_decorator, per):
        """What has no name, such as a partial function, is shown whole."""
        factory = partial(CircuitBreaker, minimum_request_threshold=1)
        builder = SessionBuilder().decorator(new_decorator(factory))

        assert builder.describe().startswith(
            f"CircuitBreakerClient(per={per!r}, factory={factory!r}, strategy="
        )


class TestCircuitBreakers:
    """The circuit breakers in use, for those who show their health."""

    async def test_they_are_found_by_key(self):
        """Those of a session's hosts that were asked for, with their present state."""
        decorator = CircuitBreakerClient.new_per_host_decorator()
        async with Scripted([200, 200], decorator) as scripted:
            client = unwrap(scripted.session, CircuitBreakerClient)
            before = client.circuit_breakers
            await scripted.get("http://a/")
            await scripted.get("http://b/")
            after = client.circuit_breakers

        assert {} == before
        assert ["a:80", "b:80"] == list(after)
        assert [1, 1] == [each.event_count.success for each in after.values()]

    async def test_to_look_changes_nothing(self):
        """The mapping is read-only, and looking into it is no use of a key."""
        decorator = CircuitBreakerClient.new_per_host_decorator()
        async with Scripted([200] * 4, decorator) as scripted:
            client = unwrap(scripted.session, CircuitBreakerClient)
            await scripted.get("http://a/")
            await scripted.get("http://b/")
            breakers = client.circuit_breakers
            assert CLOSED is breakers["a:80"].state
            with pytest.raises(TypeError):
                breakers["a:80"] = None
            for _ in breakers:
                await scripted.get("http://c/")

            assert ["a:80", "b:80", "c:80"] == list(client.circuit_breakers)

    async def test_one_for_all_stands_under_its_name(self):
        """It has no key, for it is not looked for."""
        breaker = CircuitBreaker("orders")
        decorator = CircuitBreakerClient.new_decorator(breaker)
        async with Scripted([], decorator) as scripted:
            client = unwrap(scripted.session, CircuitBreakerClient)

            assert {"orders": breaker} == client.circuit_breakers


async def test_a_call_that_succeeds_makes_no_timer_and_no_task(breaker):
    """The way of a success is lean."""

    @client_decorator
    async def server(delegate, ctx, request):
        return new_response(request, 200)

    decorator = CircuitBreakerClient.new_decorator(breaker)
    builder = SessionBuilder().decorator(server).decorator(decorator)
    async with builder.build() as session, session.get(URL):
        assert 1 == len(asyncio.all_tasks())
        # A timer that was cancelled stays here until its time has come.
        assert [] == asyncio.get_running_loop()._scheduled


async def test_listeners_hear_of_refused_calls():
    """A refusal is told once per call."""
    heard = []

    class Listener(CircuitBreakerListener):
        def on_request_rejected(self, circuit_breaker):
            heard.append(circuit_breaker.name)

    breaker = CircuitBreaker("orders", listeners=[Listener()])
    breaker.enter_state(FORCED_OPEN)
    decorator = CircuitBreakerClient.new_decorator(breaker)
    async with Scripted([], decorator) as scripted:
        for _ in range(3):
            await scripted.get()

    assert ["orders"] * 3 == heard


async def test_factory_that_makes_something_else_is_told():
    """Without a circuit breaker nothing would ever be refused."""
    decorator = CircuitBreakerClient.new_per_host_decorator(str.upper)
    async with Scripted([200], decorator) as scripted:
        with pytest.raises(ValueError) as caught:
            await scripted.get()

    assert "factory: 'LOCALHOST:80' (expected: returns a CircuitBreaker)" == str(
        caught.value
    )
