"""What a failure has cost the server, and answers that say when to come back."""

import asyncio
from contextlib import suppress

import aiohttp
import pytest
from chains import SAFELY, URL, after, now, refused, retrying, session, telling

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRpcClient,
    CircuitBreakerRule,
    CircuitBreakerStrategy,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    EventCount,
    RateLimit,
    RateLimitingClient,
    RetryBudget,
    RetryBudgetListener,
    RetryingRpcClient,
    RetryRule,
    SessionBuilder,
    UnprocessedRequestError,
    client_decorator,
    rpc,
)
from aioretry_smithy._call.servers import is_slow, is_unserved
from aioretry_smithy.testing import ScriptedTransport

CUT = aiohttp.ServerDisconnectedError()
RESET = aiohttp.ClientOSError(104, "reset")
BUSY = {"Retry-After": "1"}


class Judging(CircuitBreakerStrategy):
    """Notes of each failure whether it is unserved, and whether it is slow."""

    def __init__(self):
        self.judged = []

    def should_report_as_success(self, ctx, cause):
        work = is_unserved(ctx, cause)
        self.judged.append((work, is_slow(ctx, cause)))


def raised_for(status, headers=None):
    """Make what a function raises for an answer."""
    return aiohttp.ClientResponseError(None, (), status=status, headers=headers)


async def judged(*answers, inside=()):
    """Return the judgements of calls, made one after another."""
    judging = Judging()
    guard = CircuitBreakerClient.new_decorator(CircuitBreaker(), judging)
    async with session(answers, *inside, guard) as client:
        for _ in answers:
            with suppress(Exception):
                await client.post(URL)
    return judging.judged


async def judged_one(answer, **settings):
    """Return the judgement of one call: whether it is unserved, and whether slow."""
    (judgement,) = await judged(answer, **settings)
    return judgement


AT_ONCE = [502, 503, CUT, RESET, ConnectionResetError(104, "reset"), raised_for(503)]


@pytest.mark.parametrize("outcome", AT_ONCE, ids=repr)
@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.0, (True, False)), (0.999, (True, False)), (1.0, (False, True))],
)
async def test_a_second_separates_who_turned_it_away_from_who_worked(
    outcome, seconds, expected
):
    """Of a broken connection, and of the statuses of a gateway."""
    assert expected == await judged_one(after(seconds, outcome))


@pytest.mark.parametrize(
    "outcome",
    [
        500,
        501,
        504,
        408,
        429,
        (503, BUSY, b""),
        (429, BUSY, b""),
        raised_for(500),
        raised_for(503, BUSY),
        aiohttp.ClientPayloadError("cut"),
        aiohttp.ServerDisconnectedError(b"HTTP/1.1 200"),
        aiohttp.ClientOSError(101, "unreachable"),
        telling(
            aiohttp.ServerDisconnectedError(), is_throttling_error=True, retry_after=1.0
        ),
        ExceptionGroup("two", [CUT, CUT]),
    ],
    ids=repr,
)
async def test_all_else_at_once_was_served(outcome):
    """Errors of its own, answers that had begun, and those that say when to retry."""
    assert (False, False) == await judged_one(outcome)


@pytest.mark.parametrize("seconds", [0.0, 5.0])
@pytest.mark.parametrize(
    "outcome",
    [
        refused(),
        UnprocessedRequestError("not sent"),
        ExceptionGroup("one", [refused()]),
    ],
    ids=repr,
)
async def test_what_did_not_reach_the_server_is_unserved(outcome, seconds):
    """However long it took to learn that."""
    assert (True, seconds > 0) == await judged_one(after(seconds, outcome))


async def test_timeouts_are_slow():
    """However early; one of the connection is unserved all the same."""
    answers = [
        TimeoutError(),
        aiohttp.SocketTimeoutError(),
        aiohttp.ConnectionTimeoutError(),
        aiohttp.ClientOSError(110, "timed out"),
        telling(Exception("late"), is_timeout_error=True),
    ]

    expected = [(False, True), (False, True), (True, True), (False, True)]
    assert [*expected, (False, True)] == await judged(*answers)


async def test_waits_of_this_side_are_none_of_the_server():
    """For a place, then for a turn at a rate; no retrying client is there."""
    limit, rate = ConcurrencyLimit.fixed(1), RateLimit(1, 3.0)
    place = ConcurrencyLimitingClient.new_decorator(limit)
    turn = RateLimitingClient.new_decorator(rate)

    judging = Judging()
    guard = CircuitBreakerClient.new_decorator(CircuitBreaker(), judging)
    async with session([after(0.5, 503)] * 3, turn, place, guard) as client:
        await asyncio.gather(*[client.get(URL) for _ in range(3)])

    assert [(True, False)] * 3 == judging.judged


async def test_outside_of_retries_the_last_request_counts():
    """However long ago the call began."""
    answers = [503, 503]
    judging = Judging()
    guard = CircuitBreakerClient.new_decorator(CircuitBreaker(), judging)
    retry = retrying(5.0, max_total_attempts=2)
    async with session(answers, retry, guard) as client:
        await client.get(URL)

    assert [(True, False)] == judging.judged


async def test_what_a_decorator_raises_failed_now():
    """Nothing else is known of it."""

    @client_decorator
    async def translating(delegate, ctx, request):
        await asyncio.sleep(1.5)
        raise ConnectionResetError

    assert (False, True) == await judged_one(200, inside=[translating])


async def test_functions_have_what_their_cause_says():
    """They have no status of their own."""
    judging = Judging()
    causes = [CUT, refused(), raised_for(502), raised_for(500), ValueError("bad")]

    @rpc(CircuitBreakerRpcClient.new_decorator(CircuitBreaker(), judging))
    async def load():
        await asyncio.sleep(0.5)
        raise causes.pop(0)

    for _ in range(5):
        with suppress(Exception):
            await load()

    unserved, served = (True, False), (False, False)
    assert [unserved, unserved, unserved, served, served] == judging.judged


BUT_THROTTLING = CircuitBreakerStrategy.on_server_error_status(count_throttling=False)


class BusyError(Exception):
    """A complaint with Smithy's retry information."""

    def __init__(self, **information):
        super().__init__("busy")
        vars(self).update(information)


THROTTLED = [
    (429, {"Retry-After": "1"}, b""),
    (503, {"Retry-After": "0"}, b""),
    (503, {"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}, b""),
    (429, {"x-amz-retry-after": "10"}, b""),
    BusyError(is_throttling_error=True, retry_after=1.0),
    ExceptionGroup("one", [BusyError(is_throttling_error=True, retry_after=1.0)]),
]

FAILED = [
    503,
    (503, {"Retry-After": "soon"}, b""),
    (500, {"Retry-After": "1"}, b""),
    (502, {"Retry-After": "1"}, b""),
    (504, {"Retry-After": "1"}, b""),
    BusyError(is_throttling_error=True),
    BusyError(retry_after=1.0),
]


async def outcome(client):
    try:
        return (await client.get(URL)).status
    except Exception as error:
        return error


async def failures_in_a_row(*answers):
    """Return what a budget counts, of calls one after another."""
    budget = RetryBudget(brake_after=None)
    decorator = retrying(SAFELY, max_total_attempts=1, limiter=budget)
    async with session(answers, decorator) as client:
        for _ in answers:
            await outcome(client)
    return budget.failures_in_a_row


async def events(strategy, *answers):
    """Return what a circuit breaker counts, of calls one after another."""
    breaker = CircuitBreaker()
    guard = CircuitBreakerClient.new_decorator(breaker, strategy)
    async with session(answers, guard) as client:
        for _ in answers:
            await outcome(client)
    return breaker.event_count


@pytest.mark.parametrize("answer", THROTTLED, ids=repr)
async def test_they_do_not_press_the_brake(answer):
    """Neither do they let it go: they are nothing to it."""
    assert 0 == await failures_in_a_row(answer)

    assert 3 == await failures_in_a_row(503, answer, 503, answer, 503)


@pytest.mark.parametrize("answer", FAILED, ids=repr)
async def test_other_failures_press_it(answer):
    """Without a time to come back, or with a status that does not throttle."""
    assert 1 == await failures_in_a_row(answer)


@pytest.mark.parametrize("answer", THROTTLED, ids=repr)
async def test_a_circuit_breaker_may_count_them_as_nothing(answer):
    """Not as a success, not as a failure."""
    assert EventCount(1, 0) == await events(BUT_THROTTLING, answer, 200)


@pytest.mark.parametrize("answer", FAILED, ids=repr)
async def test_it_counts_other_failures(answer):
    """As by default."""
    assert EventCount(0, 1) == await events(BUT_THROTTLING, answer)


async def test_it_counts_them_by_default():
    """By their status."""
    throttled, busy = THROTTLED[:2]

    assert EventCount(1, 1) == await events(None, throttled, busy)


async def test_a_429_that_does_not_say_when_is_a_success():
    """As by default: the server works."""
    assert EventCount(1, 0) == await events(BUT_THROTTLING, 429)


async def test_rules_may_stand_before_it():
    """It is then the last of them."""
    rules = CircuitBreakerRule.failure(statuses=[404]) | BUT_THROTTLING

    assert EventCount(1, 1) == await events(rules, 404, *THROTTLED, 200)


async def test_a_trial_that_is_throttled_gives_its_place_back():
    """The next request is the trial, and closes the circuit."""
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.HALF_OPEN)
    guard = CircuitBreakerClient.new_decorator(breaker, BUT_THROTTLING)
    async with session([THROTTLED[0], 200], guard) as client:
        assert 429 == await outcome(client)
        assert CircuitState.HALF_OPEN == breaker.state

        assert 200 == await outcome(client)
        assert CircuitState.CLOSED == breaker.state


def test_a_setting_that_is_no_bool_is_refused():
    """Since 0 may be meant as a number."""
    with pytest.raises(ValueError, match=r"count_throttling: 0 \(expected: True or"):
        CircuitBreakerStrategy.on_server_error_status(count_throttling=0)


@pytest.mark.parametrize("status", [429, 503])
async def test_the_budget_of_the_standard_chain_pays_for_ten(status):
    """And for no more; the circuit stays closed."""
    refused = []

    class Listener(RetryBudgetListener):
        def on_retry_refused(self, budget, ctx):
            refused.append((budget.tokens, budget.failures_in_a_row))

    answers = [*[(status, {"Retry-After": "1"}, b"")] * 12, *[200] * 10]
    builder = SessionBuilder.standard(
        inside=[ScriptedTransport(answers)],
        limiter=RetryBudget.per_host(listeners=[Listener()]),
        strategy=RetryRule(statuses=[429, 503], backoff=Backoff.fixed(0.5)),
    )
    async with builder.build() as client:
        answered = await asyncio.gather(*[outcome(client) for _ in range(12)])

    assert 10 * [200] + 2 * [status] == answered
    assert [(0.0, 0)] * 2 == refused


async def test_functions_say_it_by_an_exception():
    """With Smithy's retry information, which the wait goes by as well."""
    budget = RetryBudget(brake_after=1)
    outcomes = iter([BusyError(is_throttling_error=True, retry_after=2.0), None])
    rule = RetryRule(exceptions=[BusyError], backoff=Backoff.without_delay())

    @rpc(RetryingRpcClient.new_decorator(rule, limiter=budget))
    async def load():
        if (error := next(outcomes)) is not None:
            raise error
        return now()

    assert 2.0 == await load()
