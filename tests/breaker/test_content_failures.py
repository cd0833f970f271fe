"""Errors and broken bodies where a circuit breaker looks at content."""

import asyncio
import gc
import weakref
from contextlib import suppress

import aiohttp
import pytest
from calls import raised, raising
from chains import URL, Scripted, bad_argument, now, response_of, retrying, session
from circuits import busy, guarded, is_busy, noting, silent
from fake_responses import unending
from pairs import each_pair

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRpcClient,
    CircuitBreakerRule,
    CircuitBreakerRuleWithContent,
    CircuitBreakerStrategy,
    CircuitState,
    EventCount,
    HedgingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryRuleWithContent,
    client_decorator,
    new_response,
    rpc,
)

CLOSED, OPEN, HALF_OPEN, FORCED_OPEN = CircuitState


BUSY, FINE = (200, {}, b"busy and more"), (200, {}, b"fine and more")


@pytest.fixture
def breaker():
    """A circuit breaker that counts, and never opens by itself."""
    return CircuitBreaker("orders", failure_rate_threshold=1)


def breaking(ctx, request):
    """Answer with a body that breaks off."""
    response = unending(request, start=b"bu")
    response.content.set_exception(aiohttp.ClientPayloadError("broke off"))
    return response


class TestErrorInside:
    """Bodies that are looked at while they are whole."""

    async def test_an_error_inside_a_200_is_a_failure(self, breaker):
        """The caller gets the whole body, as if nobody had looked."""
        decorator = guarded(breaker, busy(max_content_length=4))
        async with session([BUSY, FINE], decorator) as client:
            async with client.get(URL) as response:
                assert b"busy and more" == await response.read()
            async with client.get(URL) as response:
                assert b"fine and more" == b"".join(
                    [part async for part in response.content.iter_any()]
                )

        assert EventCount(success=1, failure=1) == breaker.event_count

    async def test_trials_are_judged_by_it_too(self):
        """A server that answers 200 with an error inside has not recovered."""
        breaker = CircuitBreaker(circuit_open_window=Backoff.exponential(5.0, 60.0))
        breaker.enter_state(OPEN)
        async with Scripted([BUSY, FINE], guarded(breaker, busy())) as scripted:
            await asyncio.sleep(5.0)
            await scripted.get()
            assert (OPEN, 10.0) == (breaker.state, breaker.retry_in)
            await asyncio.sleep(10.0)
            await scripted.get()

        assert CLOSED is breaker.state

    async def test_it_hears_of_failures_as_ever(self, breaker):
        """Without content, and of statuses with it."""
        seen = []
        answers = [TimeoutError(), (503, {}, b"down"), aiohttp.InvalidURL("x")]
        async with Scripted(answers, guarded(breaker, noting(seen))) as scripted:
            with pytest.raises(TimeoutError):
                await scripted.get()
            assert 503 == await scripted.get()
            await scripted.get()

        assert [None, b"down"] == seen
        assert EventCount(success=0, failure=2) == breaker.event_count

    async def test_retries_look_at_the_same_body(self, breaker):
        """What the circuit breaker has read is there for the strategy."""
        seen = []
        rule = RetryRuleWithContent(
            on_content=lambda content: seen.append(content) or is_busy(content),
            backoff=Backoff.fixed(0.5),
        )
        decorators = guarded(breaker, busy()), retrying(rule)
        response = await response_of(session([BUSY, FINE], *decorators))

        assert b"fine and more" == await response.read()
        assert [BUSY[2], FINE[2]] == seen
        assert EventCount(success=1, failure=1) == breaker.event_count

    @pytest.mark.parametrize("strategy", [busy, CircuitBreakerRuleWithContent, b"", 7])
    def test_anything_else_is_refused(self, breaker, strategy):
        """A function or a class is no rule."""
        with bad_argument("strategy", strategy, "a CircuitBreakerStrategy or a rule"):
            guarded(breaker, strategy)

    async def test_a_function_that_raises_is_the_callers(self, breaker):
        """The permit comes back, and the response is closed."""
        error, closed = ArithmeticError(), []

        def answer(ctx, request):
            response = new_response(request, 200, body=b"busy")
            close = response.close
            response.close = lambda: closed.append(True) or close()
            return response

        def divide(content):
            raise error

        rule = CircuitBreakerRuleWithContent(on_content=divide)
        breaker.enter_state(HALF_OPEN)
        async with Scripted([answer], guarded(breaker, rule)) as scripted:
            with pytest.raises(ArithmeticError) as caught:
                await scripted.get()

        assert error is caught.value
        assert isinstance(RequestLog.of(error).response_cause, ArithmeticError)
        assert closed
        assert 0.0 == breaker.retry_in

    async def test_in_a_hedged_call_each_request_is_looked_at(self, breaker):
        """The circuit breaker stands inside; the answer that wins has been judged."""

        def late(ctx, request):
            return unending(request, start=b"b")

        decorators = guarded(breaker, busy()), HedgingClient.new_decorator(0.5)
        response = await response_of(session([late, FINE], *decorators))

        assert b"fine and more" == await response.read()
        assert EventCount(success=1, failure=0) == breaker.event_count


class TestBodyThatFails:
    """A body that breaks or stalls while a rule reads it is a failed attempt."""

    @pytest.mark.parametrize(
        ("answers", "outside"),
        [([breaking], ()), ([503, breaking], [retrying(0.5)])],
        ids=["in an attempt", "around retries"],
    )
    async def test_it_is_counted_and_raised(self, breaker, answers, outside):
        """The log has it as the cause; outside of retries there is no other attempt."""
        client = session(answers, *outside, guarded(breaker, busy()))
        with pytest.raises(aiohttp.ClientPayloadError, match="broke off") as caught:
            await response_of(client)

        log = RequestLog.of(caught.value)
        assert caught.value is log.response_cause
        assert (False, len(answers)) == (log.is_success, log.total_attempts)
        assert EventCount(success=0, failure=1) == breaker.event_count

    async def test_it_is_retried(self, breaker):
        """As any failure of an attempt."""
        decorators = (guarded(breaker, busy()), retrying(0.5))
        response = await response_of(session([breaking, FINE], *decorators))

        first, last = RequestLog.of(response).children
        assert b"fine and more" == await response.read()
        assert isinstance(first.response_cause, aiohttp.ClientPayloadError)
        assert None is last.response_cause
        assert EventCount(success=1, failure=1) == breaker.event_count

    async def test_one_that_stalls_is_cut_at_the_limit_of_its_attempt(self, breaker):
        """Its error says so, and the next attempt begins."""
        limited = retrying(0.5, attempt_timeout=2.0)
        decorators = (guarded(breaker, busy()), limited)
        response = await response_of(session([silent, FINE], *decorators))

        first, _ = RequestLog.of(response).children
        assert 2.5 == now()
        assert isinstance(first.response_cause, AttemptTimeoutError)
        assert "while its body was read" in str(first.response_cause)
        assert EventCount(success=1, failure=1) == breaker.event_count

    @pytest.mark.parametrize("is_outside", [False, True])
    async def test_the_deadline_of_the_call_cuts_it_too(self, breaker, is_outside):
        """With the error of that, also a body that aiohttp has no timer for."""
        decorators = [guarded(breaker, busy()), retrying(0.5)]
        if is_outside:
            decorators.reverse()
        with pytest.raises(ResponseTimeoutError) as caught:
            await response_of(session([silent], *decorators, timeout=3.0))

        assert 3.0 == now()
        assert not isinstance(caught.value, AttemptTimeoutError)
        assert EventCount(success=0, failure=1) == breaker.event_count

    async def test_the_failure_is_what_the_rules_are_asked_about(self, breaker):
        """Once more, from the first of them."""
        rules = (
            CircuitBreakerRule.ignore(exceptions=aiohttp.ClientPayloadError) | busy()
        )
        async with Scripted([breaking], guarded(breaker, rules)) as scripted:
            assert aiohttp.ClientPayloadError is await scripted.get()

        assert EventCount(success=0, failure=0) == breaker.event_count

    async def test_a_rule_that_raises_about_it_goes_first(self, breaker):
        """Its error is the outcome then, with the failure as its context."""

        def divide(cause):
            raise ArithmeticError

        rules = CircuitBreakerRule.ignore(exceptions=divide) | busy()
        with pytest.raises(ArithmeticError) as caught:
            await response_of(session([breaking], guarded(breaker, rules)))

        assert isinstance(caught.value.__context__, aiohttp.ClientPayloadError)
        log = RequestLog.of(caught.value)
        assert isinstance(log.response_cause, ArithmeticError)
        assert EventCount(success=0, failure=0) == breaker.event_count

    async def test_what_answers_in_its_place_is_what_the_log_has(self, breaker):
        """A decorator further out may have something for such a case."""

        @client_decorator
        async def rescue(delegate, ctx, request):
            try:
                return await delegate.execute(ctx, request)
            except aiohttp.ClientPayloadError:
                return new_response(request, 203)

        decorators = guarded(breaker, busy()), rescue, retrying(0.5)
        response = await response_of(session([breaking], *decorators))

        log = RequestLog.of(response)
        assert (203, None) == (log.response_status, log.response_cause)
        assert log.is_success

    async def test_cancelled_meanwhile_it_gives_its_trial_back(self, breaker):
        """Nothing is counted, and the response is closed."""
        made = []

        def keeping(ctx, request):
            made.append(silent(ctx, request))
            return made[-1]

        breaker.enter_state(HALF_OPEN)
        decorators = (guarded(breaker, busy()),)
        async with session([keeping], *decorators) as client:
            task = asyncio.create_task(client.get(URL))
            await asyncio.sleep(1.0)
            assert 2.0 == breaker.retry_in
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        assert (HALF_OPEN, 0.0) == (breaker.state, breaker.retry_in)
        assert made[0].closed

    async def test_the_failure_keeps_nothing_alive(self, breaker):
        """Nothing of it waits for the garbage collector."""
        gc.disable()
        try:
            client = session([silent], guarded(breaker, busy()), timeout=3.0)
            try:
                await response_of(client)
            except ResponseTimeoutError as error:
                kept = weakref.ref(error)

            assert None is kept()
        finally:
            gc.enable()


WITHOUT_THROTTLING = CircuitBreakerStrategy.on_server_error_status(
    count_throttling=False
)
STRATEGIES = {
    "the default": None,
    "without throttling": WITHOUT_THROTTLING,
    "failures": CircuitBreakerRule.failure(statuses=[404]),
    "successes": CircuitBreakerRule.success(status_classes=[5]),
    "ignored": CircuitBreakerRule.ignore(statuses=[503]),
    "content": CircuitBreakerRuleWithContent.failure(
        statuses=[404], on_content=lambda content: False
    ),
}


async def counted(answer, strategy, *inside):
    """Return the successes and the failures that one answer counts for."""
    breaker = CircuitBreaker("shop")
    decorator = CircuitBreakerClient.new_decorator(breaker, strategy)
    async with session([answer], *inside, decorator) as client:
        with suppress(aiohttp.ClientResponseError):
            await client.get(URL)
    count = breaker.event_count
    return count.success, count.failure


@each_pair(
    status=[400, 401, 404, 408, 429, 500, 503, 999],
    headers=[{}, {"Retry-After": "1"}, {"Retry-After": "soon"}],
    name=[*STRATEGIES],
)
async def test_raised_status_counts_as_its_answer_does(status, headers, name):
    """Strategies and rules see the same."""
    answer, strategy = (status, headers, b""), STRATEGIES[name]

    assert await counted(answer, strategy) == await counted(answer, strategy, raising)


def on(exceptions):
    return CircuitBreakerRule.failure(exceptions=exceptions)


OF_A_PROXY = {"kind": aiohttp.ClientHttpProxyError}


@pytest.mark.parametrize(
    ("status", "settings", "strategy", "expected"),
    [
        (404, {}, None, (1, 0)),
        (503, {}, None, (0, 1)),
        (429, {"headers": {"Retry-After": "3"}}, None, (1, 0)),
        (429, {"headers": {"Retry-After": "3"}}, WITHOUT_THROTTLING, (0, 0)),
        # A tunnel that is refused closes no circuit; one that cannot be dug counts.
        (404, OF_A_PROXY, None, (0, 0)),
        (503, OF_A_PROXY, None, (0, 1)),
        # A class above that of raised answers means failures.
        (404, {}, on(aiohttp.ClientError), (1, 0)),
        (404, {}, on(aiohttp.ClientResponseError), (0, 1)),
    ],
)
async def test_raised_status_in_figures(status, settings, strategy, expected):
    """Successes and failures that it counts for."""
    assert expected == await counted(raised(status, **settings), strategy)


async def test_function_that_raises_404_opens_no_circuit():
    """Nothing was found six times, by a server that is well."""
    breaker = CircuitBreaker("shop", minimum_request_threshold=3)
    guard = CircuitBreakerRpcClient.new_decorator(breaker)
    async with session([404] * 6, raise_for_status=True) as client:

        @rpc(guard)
        async def fetch():
            await client.get(URL)

        for _ in range(6):
            with pytest.raises(aiohttp.ClientResponseError):
                await fetch()

    assert CircuitState.CLOSED == breaker.state
    assert (6, 0) == (breaker.event_count.success, breaker.event_count.failure)
