"""The stop reason of a call whose last attempt was refused on this side."""

import asyncio
from contextlib import suppress

import pytest
from chains import NOW, URL, Always, after, log_of, retrying, session, twice

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRpcClient,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    FailFastError,
    RateLimit,
    RateLimitError,
    RateLimitingClient,
    RequestLog,
    RetryBudget,
    RetryConfig,
    RetryingRpcClient,
    RetryRule,
    RetryStrategy,
    UnprocessedRequestError,
    capture_logs,
    client_decorator,
    is_unprocessed,
    new_response,
    request_options,
    rpc,
    smithy,
)


def open_breaker():
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)
    return breaker


def guarded(fallback=None):
    return CircuitBreakerClient.new_decorator(open_breaker(), fallback=fallback)


class Full(ConcurrencyLimit):
    """Leaves no place, however long a request waits."""

    limit = 0


def full(timeout=0.0, **settings):
    return ConcurrencyLimitingClient.new_decorator(Full(), timeout=timeout, **settings)


def drained():
    """Let no request out for years."""
    limit = RateLimit.from_headers(max_wait=1e9)
    limit._line.rule.close(0.0, 1e9)
    return RateLimitingClient.new_decorator(limit, timeout=0.0)


@client_decorator
async def doorman(delegate, ctx, request):
    """Turn requests away, as a decorator of one's own may."""
    raise UnprocessedRequestError("full")


FAILSAFE = RetryStrategy.failsafe(NOW)
NEVER = retrying(RetryStrategy.never())
STOPS = {
    "no_retry": NEVER,
    "max_total_attempts": retrying(FAILSAFE, max_total_attempts=3),
    "backoff_exhausted": retrying(RetryStrategy.failsafe(NOW.with_max_attempts(2))),
    "smithy": retrying(smithy.SimpleRetryStrategy(max_attempts=2)),
}


@pytest.mark.parametrize("refusing", [guarded, full, drained])
@pytest.mark.parametrize("retries", STOPS.values(), ids=STOPS)
async def test_refusal_goes_before_what_says_less(refusing, retries):
    """The call failed because of it, whatever kept it from being tried again."""
    log = await log_of(session([], refusing(), retries))

    assert "refused" == log.stop_reason
    assert "refused" == log.to_dict()["stop_reason"]
    assert log.render().splitlines()[0].endswith(", stopped: refused")


@pytest.mark.parametrize(
    ("stops", "reason"),
    [
        *((each, each) for each in STOPS if each != "smithy"),
        ("smithy", "max_total_attempts"),
    ],
)
async def test_decorator_of_ones_own_that_turns_away_is_no_refusal(stops, reason):
    """Its error says that nothing was sent; nobody knows what it protects."""
    log = await log_of(session([], doorman, STOPS[stops]))

    assert (reason, False) == (log.stop_reason, log.sent)


async def test_last_attempt_decides():
    """An attempt that was refused, and then one that was answered; and the reverse."""
    breaker = CircuitBreaker(minimum_request_threshold=1)
    inside = CircuitBreakerClient.new_decorator(breaker)
    named = RetryRule(exceptions=[FailFastError], status_classes=[5], backoff=NOW)
    log = await log_of(session([503], inside, retrying(named, max_total_attempts=2)))
    breaker.enter_state(CircuitState.OPEN)
    slow = retrying(Always(Backoff.fixed(20.0)), max_total_attempts=2)
    other = await log_of(session([503], inside, slow))

    assert ["refused", "max_total_attempts"] == [log.stop_reason, other.stop_reason]
    assert [503, None] == [each.response_status for each in log.children]
    assert [None, 503] == [each.response_status for each in other.children]


@pytest.mark.parametrize(
    ("reason", "settings", "seconds"),
    [
        ("deadline", {"strategy": Backoff.fixed(60.0)}, 30.0),
        ("limiter", {"limiter": RetryBudget(capacity=1.0, deposit=0.0)}, None),
        ("body_not_replayable", {}, None),
        ("error", {"strategy": "raises"}, None),
    ],
)
async def test_reasons_that_a_refusal_does_not_replace(reason, settings, seconds):
    """Each of them keeps a call from going on that would have."""

    class Raises(RetryStrategy):
        def should_retry(self, ctx, cause):
            raise ValueError

    @client_decorator
    async def reads(delegate, ctx, request):
        with suppress(UnprocessedRequestError):
            await delegate.execute(ctx, request)
        raise UnprocessedRequestError("full")

    async def chunks():
        yield b"one"

    settings = dict(settings)
    strategy = settings.pop("strategy", NOW)
    wants = Raises() if strategy == "raises" else Always(strategy)
    is_spent = reason == "body_not_replayable"
    inside = reads if is_spent else full()
    data = {"method": "POST", "data": chunks()} if is_spent else {}
    answers = [200] * 9
    retries = retrying(wants, **settings)
    log = await log_of(session(answers, inside, retries, timeout=seconds), **data)

    assert reason == log.stop_reason


async def test_rate_limiter_of_a_strategy_stays_the_limiter():
    """It is the retrying client's own."""

    class HeldUp(smithy.StandardRetryStrategy):
        async def acquire_initial_retry_token(self, *, token_scope=None):
            raise smithy.CapacityNotAvailableError(1.0)

    log = await log_of(session([], retrying(HeldUp())))

    assert "limiter" == log.stop_reason


async def log_of_one(client):
    with capture_logs() as logs, suppress(Exception):
        await client.get(URL)
    return logs[0]


@pytest.mark.parametrize(("status", "reason"), [(200, None), (503, "refused")])
async def test_bad_answer_of_a_fallback_is_a_refusal(status, reason):
    """A good one is a success like any other."""
    inside = guarded(lambda ctx, request: new_response(request, status))
    log = await log_of(session([], inside, retrying(FAILSAFE, max_total_attempts=1)))

    assert reason == log.stop_reason


async def test_error_of_a_fallback_is_one_of_its_own():
    """It is no refusal of ours that the caller gets."""

    def fallback(ctx, request):
        raise KeyError("not in the cache")

    log = await log_of(session([], guarded(fallback), NEVER))

    assert "no_retry" == log.stop_reason


async def test_body_that_is_spent_is_no_refusal():
    """No breaker and no limit had a part in it."""

    async def chunks():
        yield b"one"

    client = session([200] * 9, twice, NEVER)
    log = await log_of(client, method="POST", data=chunks())

    assert "no_retry" == log.stop_reason


class TestCallsInside:
    """What a call made inside an attempt was refused is the reason of that call."""

    @pytest.mark.parametrize("refusing", [guarded, full])
    async def test_request_of_a_function(self, refusing):
        """The function was not refused; its request was."""

        @rpc(RetryingRpcClient.new_decorator(RetryStrategy.never()))
        async def operation(client):
            await client.get(URL)

        async with session([], refusing(), NEVER) as client:
            with capture_logs() as logs, suppress(Exception):
                await operation(client)

        (call,) = logs[0].children[0].calls
        assert ("no_retry", "refused") == (logs[0].stop_reason, call.stop_reason)

    async def test_request_of_a_decorator(self):
        """At the very time at which the attempt began."""
        async with session([], full()) as other:

            @client_decorator
            async def ask_first(delegate, ctx, request):
                await other.get(URL)

            log = await log_of(session([], ask_first, NEVER))

        assert "no_retry" == log.stop_reason

    @pytest.mark.parametrize(
        "error",
        [UnprocessedRequestError("full"), RateLimitError(RateLimit(1), 9.0)],
        ids=["any", "ours"],
    )
    async def test_function_that_raises_it_itself(self, error):
        """That is a failure of the function, which ran."""

        @rpc(RetryingRpcClient.new_decorator(RetryStrategy.never()))
        async def operation():
            raise error

        with pytest.raises(UnprocessedRequestError) as caught:
            await operation()

        assert "no_retry" == RequestLog.of(caught.value).stop_reason
        assert is_unprocessed(caught.value)

    async def test_function_that_was_refused(self):
        """By a circuit breaker around it, on each attempt or on the last."""
        breaker = CircuitBreaker(minimum_request_threshold=1)
        named = RetryRule(exceptions=[FailFastError, OSError], backoff=NOW)

        @rpc(
            CircuitBreakerRpcClient.new_decorator(breaker),
            RetryingRpcClient.new_decorator(named, 2),
        )
        async def operation():
            raise OSError

        with pytest.raises(FailFastError) as caught:
            await operation()

        log = RequestLog.of(caught.value)
        assert ("refused", 2) == (log.stop_reason, log.total_attempts)

    async def test_function_that_a_decorator_turns_away(self):
        """By a limit of ours; the function has not run."""

        @client_decorator
        async def turn_away(delegate, ctx, request):
            raise RateLimitError(RateLimit(1), 9.0)

        @rpc(turn_away, RetryingRpcClient.new_decorator(RetryStrategy.never()))
        async def operation():
            raise AssertionError

        with pytest.raises(RateLimitError) as caught:
            await operation()

        assert "refused" == RequestLog.of(caught.value).stop_reason

    async def test_request_that_is_turned_away_after_another(self):
        """A decorator sends two, and the second one is over the limit."""

        @client_decorator
        async def send_two(delegate, ctx, request):
            await delegate.execute(ctx, request)
            raise RateLimitError(RateLimit(1), 9.0)

        log = await log_of(session([200], send_two, NEVER))

        assert "refused" == log.stop_reason

    async def test_failure_that_is_raised_again_and_again_is_its_own(self):
        """It may have ended an earlier call, whose log it has."""
        kept = RateLimitError(RateLimit(1), 9.0)

        @client_decorator
        async def turn_away(delegate, ctx, request):
            await asyncio.sleep(1.0)
            raise kept

        client = session([], turn_away, NEVER)
        async with client:
            reasons = [(await log_of_one(client)).stop_reason for _ in range(2)]

        assert ["refused", "refused"] == reasons


ATTEMPTS = RetryingRpcClient.new_decorator(FAILSAFE, 3)


async def attempts_outside(*chain, inner=None, outer=ATTEMPTS):
    """Return the attempts of a function whose one request is refused in the end."""

    @rpc(outer, idempotent=True)
    async def operation(client):
        with request_options(retry=inner):
            await client.get(URL)

    with capture_logs() as logs:
        async with session([], *chain) as client:
            with suppress(Exception):
                await operation(client)
    assert {"refused"} == {each.calls[0].stop_reason for each in logs[0].children}
    return logs[0].total_attempts


ONCE = retrying(FAILSAFE, max_total_attempts=1)
TWICE = retrying(FAILSAFE, max_total_attempts=2)


class TestGivenUp:
    """Calls further out know a refusal as given up, where enough was tried."""

    @pytest.mark.parametrize(
        ("chain", "attempts"),
        [
            # Nothing was tried at all, so a function around it may.
            ([full(), ONCE], 3),
            # Retries of both would multiply.
            ([full(), TWICE], 1),
            # A wait as long as the limit allows is patience enough.
            ([full(timeout=5.0), ONCE], 1),
            # Without a place in the queue nobody has waited.
            ([full(timeout=5.0, max_pending=0), ONCE], 3),
        ],
    )
    async def test_attempts_of_a_function_outside(self, chain, attempts):
        """More than one attempt, or a wait in a queue, is enough."""
        await asyncio.sleep(1.0)  # the clock of the loop begins at 0

        assert attempts == await attempts_outside(*chain)

    async def test_after_a_wait_for_a_turn(self):
        """That goes before the attempt that a limit behind it refused."""
        limit = RateLimit(1, per=5.0)
        waiting = RateLimitingClient.new_decorator(limit)
        async with session([200], waiting) as client:
            await client.get(URL)

        assert 1 == await attempts_outside(full(), waiting, ONCE)

    async def test_after_a_wait_for_a_turn_that_never_came(self):
        """Another answer said that nothing was left for longer."""
        limit = RateLimit.from_headers()
        limiting = RateLimitingClient.new_decorator(limit, timeout=2.0)

        def answer(seconds, status=200):
            return status, {"RateLimit": f'"a";r=0;t={seconds}'}, b""

        async with session([after(0.5, answer(50)), answer(1)], limiting) as client:
            slow = asyncio.create_task(client.get(URL))
            await asyncio.sleep(0)
            await client.get(URL)
            # Its turn would come after a second.
            attempts = await attempts_outside(limiting, ONCE)
            await slow

        assert 1 == attempts

    async def test_open_circuit_is_left_alone_by_ready_made_strategies(self):
        """Whatever was tried: it would refuse again."""
        once = RetryConfig(FAILSAFE, 1)

        assert 1 == await attempts_outside(guarded(), TWICE, inner=once)
