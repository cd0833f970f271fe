"""The decorator that asks a circuit breaker before each request."""

import asyncio
import math

import aiohttp
import pytest
from calls import was_refused
from chains import URL, Scripted, connected, retrying

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerStrategy,
    CircuitState,
    EventCount,
    FailFastError,
    RequestLog,
    capture_logs,
    client_decorator,
    new_response,
)

guarded = CircuitBreakerClient.new_decorator
CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState


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
    """Outcomes that are reported to the circuit breaker."""

    async def test_a_made_up_response_is_judged_by_its_own_status(self, breaker):
        """A decorator in between may change the outcome; that is what counts."""

        @client_decorator
        async def apology(delegate, ctx, request):
            await delegate.execute(ctx, request)
            return new_response(request, 200)

        async with Scripted([503], apology, guarded(breaker)) as scripted:
            assert 200 == await scripted.get()

        assert EventCount(success=1, failure=0) == breaker.event_count

    async def test_a_made_up_failure_is_what_the_strategy_sees(self, breaker):
        """A decorator that raises after a response has failed."""
        strategy = Verdict(False)

        @client_decorator
        async def strict(delegate, ctx, request):
            await delegate.execute(ctx, request)
            raise aiohttp.ClientPayloadError("no good")

        async with Scripted([200], strict, guarded(breaker, strategy)) as scripted:
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
        async with Scripted([], forgetful, guarded(breaker)) as scripted:
            with pytest.raises(TypeError, match="response: None"):
                await scripted.get()

        assert breaker.try_request().is_trial

    async def test_the_response_is_handed_on_unread(self, breaker):
        """The caller streams the body himself."""
        async with (
            Scripted([(200, {}, b"orders")], guarded(breaker)) as scripted,
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

        async with Scripted([answer], slow, guarded(breaker)) as scripted:
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
        async with Scripted([404], guarded(breaker, strategy)) as scripted:
            assert 404 == await scripted.get()

        assert count == breaker.event_count
        assert state is breaker.state
        assert [(404, None, None)] == strategy.asked

    @pytest.mark.parametrize("kind", [Verdict, AsyncVerdict])
    async def test_an_exception_is_shown_to_the_strategy(self, breaker, kind):
        """A strategy may take a failure for a success, the caller gets it still."""
        cause = aiohttp.ServerDisconnectedError()
        strategy = kind(True)
        async with Scripted([cause], guarded(breaker, strategy)) as scripted:
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
        async with Scripted(
            [responding(releases)], guarded(breaker, kind(error))
        ) as scripted:
            with pytest.raises(LookupError) as caught:
                await scripted.session.get(URL)

        assert error is caught.value
        assert 1 == len(releases)
        assert HALF_OPEN is breaker.state
        assert breaker.try_request().is_trial

    @pytest.mark.parametrize("status", [200, 500])
    async def test_an_error_of_the_circuit_breaker_goes_to_the_caller(self, status):
        """A class of the user's may raise where it counts; the response is closed."""

        class Broken(CircuitBreaker):
            def on_success(self, permit=None):
                raise LookupError("bug in the circuit breaker")

            on_failure = on_success

        releases = []
        async with Scripted(
            [responding(releases, status)], guarded(Broken("orders"))
        ) as scripted:
            with pytest.raises(LookupError, match="bug in the circuit breaker"):
                await scripted.session.get(URL)

        assert 1 == len(releases)

    @pytest.mark.parametrize(
        ("strategy", "error"),
        [
            (Verdict(LookupError()), LookupError),
            (AsyncVerdict(LookupError()), LookupError),
            (Verdict("x"), ValueError),
        ],
    )
    async def test_an_error_of_the_strategy_has_the_failure_as_context(
        self, breaker, strategy, error
    ):
        """The failure of the attempt is not lost."""
        breaker.enter_state(HALF_OPEN)
        cause = aiohttp.ServerDisconnectedError()
        async with Scripted([cause], guarded(breaker, strategy)) as scripted:
            with pytest.raises(error) as caught:
                await scripted.session.get(URL)

        assert cause is caught.value.__context__
        assert breaker.try_request().is_trial

    @pytest.mark.parametrize("kind", [Verdict, AsyncVerdict])
    @pytest.mark.parametrize("answer", [1, 0, "x", "", 1.0, object])
    async def test_a_verdict_that_is_none_of_the_three_is_an_error(
        self, breaker, kind, answer
    ):
        """A strategy that answers something else has a bug, and hears which."""
        releases = []
        breaker.enter_state(HALF_OPEN)
        async with Scripted(
            [responding(releases)], guarded(breaker, kind(answer))
        ) as scripted:
            with pytest.raises(ValueError) as caught:
                await scripted.session.get(URL)

        expected = "(expected: True, False or None)"
        assert f"should_report_as_success: {answer!r} {expected}" == str(caught.value)
        assert 1 == len(releases)
        assert EventCount(success=0, failure=0) == breaker.event_count
        assert breaker.try_request().is_trial

    async def test_cancellation_while_the_strategy_thinks_leaves_nothing(self, breaker):
        """The response is closed and nothing is counted."""
        releases = []
        breaker.enter_state(HALF_OPEN)
        async with Scripted(
            [responding(releases)], guarded(breaker, AsyncVerdict(True))
        ) as scripted:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(scripted.session.get(URL), 0.5)

        assert 1 == len(releases)
        assert breaker.try_request().is_trial


class TestRefusal:
    """While the circuit is open."""

    async def test_a_refused_request_fails_fast(self, breaker):
        """Nothing is sent; the error says who refused and for how long."""
        async with Scripted([500], guarded(breaker)) as scripted:
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
        """There is no time at which another state will be entered."""
        breaker.enter_state(FORCED_OPEN)
        async with Scripted([], guarded(breaker)) as scripted:
            with pytest.raises(FailFastError) as caught:
                await scripted.session.get(URL)

        assert None is caught.value.retry_in

    async def test_a_cancelled_trial_gives_its_place_back(self, breaker):
        """The next request is the trial at once, and decides."""
        async with Scripted([500, hang, 200], guarded(breaker)) as scripted:
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
        async with Scripted([hang] * 20, guarded(breaker)) as scripted:
            for _ in range(20):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(scripted.session.get(URL), 0.1)

        assert CLOSED is breaker.state
        assert EventCount(success=0, failure=0) == breaker.event_count


@pytest.mark.parametrize("broken", ["factory", "strategy", "fallback"])
async def test_error_in_what_a_client_asks_is_in_the_log(breaker, broken):
    """An error from a function of the user's becomes the outcome."""

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
        seen.append(was_refused(ctx))
        breaker.enter_state(CLOSED)
        response = await delegate.execute(ctx, request)
        seen.append(was_refused(ctx))
        return response

    breaker.enter_state(OPEN)
    async with Scripted([200], guarded(breaker), twice) as scripted:
        await scripted.get()

    assert [True, False] == seen


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("circuit_breaker", "orders", "a CircuitBreaker"),
        ("strategy", "5xx", "a CircuitBreakerStrategy or a rule"),
        ("fallback", 203, "(ctx, request) -> response"),
    ],
)
def test_bad_arguments_are_rejected(name, value, expected):
    """A bad argument is named where the decorator is made."""
    with pytest.raises(ValueError) as caught:
        guarded(**{"circuit_breaker": CircuitBreaker("orders")} | {name: value})

    assert f"{name}: {value!r} (expected: {expected})" == str(caught.value)


async def test_a_call_that_succeeds_makes_no_timer_and_no_task(breaker):
    """A success needs neither."""

    @client_decorator
    async def server(delegate, ctx, request):
        return new_response(request, 200)

    unlimited = aiohttp.ClientTimeout(total=None)
    async with (
        connected(None, server, guarded(breaker), timeout=unlimited) as session,
        session.get(URL),
    ):
        assert 1 == len(asyncio.all_tasks())
        # A timer that was cancelled stays here until its time has come.
        assert [] == asyncio.get_running_loop()._scheduled


async def cached(ctx, request):
    """Answer in place of the server."""
    return new_response(request, 203)


class TestFallback:
    """Answers in place of refused requests."""

    @pytest.mark.parametrize("outside", [[], [retrying()]], ids=["call", "attempt"])
    async def test_a_fallback_sees_the_refusal(self, breaker, outside):
        """In the log while it runs; afterwards the log has its response alone."""
        seen = []

        def fallback(ctx, request):
            seen.append(ctx.log.response_cause)
            return new_response(request, 203)

        breaker.enter_state(CircuitState.OPEN)
        async with (
            Scripted([], guarded(breaker, fallback=fallback), *outside) as scripted,
            scripted.session.get(URL) as response,
        ):
            log = RequestLog.of(response)

        (cause,) = seen
        assert type(cause) is FailFastError
        assert breaker is cause.circuit_breaker
        assert 10.0 == cause.retry_in
        assert (203, None) == (log.response_status, log.response_cause)

    @pytest.mark.parametrize(
        ("answer", "told"),
        [(None, "stale returned nothing"), ({}, "stale returned a dict")],
    )
    async def test_a_fallback_that_brings_no_response_is_named(
        self, breaker, answer, told
    ):
        """No delegate was called, so it is not what that returned."""

        def stale(ctx, request):
            return answer

        breaker.enter_state(CircuitState.OPEN)
        async with Scripted([], guarded(breaker, fallback=stale)) as scripted:
            with pytest.raises(TypeError, match=told):
                await scripted.session.get(URL)

    async def test_a_failure_gets_no_fallback(self, breaker):
        """Only what the open circuit refused is answered by it."""

        async def fallback(ctx, request):
            raise AssertionError("not asked for")

        async with Scripted([500], guarded(breaker, fallback=fallback)) as scripted:
            assert 500 == await scripted.get()

    async def test_inside_retrying_a_fallback_ends_the_call(self, breaker):
        """The retrying client sees the response of the fallback, and is content."""
        inside = guarded(breaker, fallback=cached)
        async with Scripted([500], inside, retrying(1.0)) as scripted:
            with capture_logs() as logs:
                assert 203 == await scripted.get()

        (log,) = logs
        assert [500, 203] == [child.response_status for child in log.children]


@pytest.mark.parametrize("has_fallback", [True, False])
async def test_a_decorator_outside_finds_the_refusal_in_the_log(breaker, has_fallback):
    """The fallback's response is logged here, as the leaf logs its own."""
    seen = []

    @client_decorator
    async def look(delegate, ctx, request):
        try:
            return await delegate.execute(ctx, request)
        finally:
            seen.append((ctx.log.response_status, type(ctx.log.response_cause)))

    breaker.enter_state(CircuitState.OPEN)
    inside = guarded(breaker, fallback=cached if has_fallback else None)
    async with Scripted([], inside, look) as scripted:
        await scripted.get()

    assert [(203, type(None)) if has_fallback else (None, FailFastError)] == seen
