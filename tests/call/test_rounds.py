"""Connections that break together are one failure, to circuit breakers and budgets."""

import asyncio
from contextlib import suppress

import aiohttp
import pytest
from calls import begin, call_of
from chains import NOW, SAFELY, URL, after, now, raised_from, refused, retrying, session
from fake_redis import FakeRedis
from fake_responses import unending

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerListener,
    CircuitBreakerRpcClient,
    CircuitBreakerStrategy,
    CircuitState,
    RetryBudget,
    RetryingRpcClient,
    RetryStrategy,
    client_decorator,
    rpc,
)
from aioretry_smithy._call.servers import failed_at
from aioretry_smithy.redis import SharedRetryBudget

CUT = aiohttp.ServerDisconnectedError()
CLOSED, OPEN, HALF_OPEN, _ = CircuitState


class OwnError(aiohttp.ServerDisconnectedError):
    """A user's own, without what its class has."""

    def __init__(self):
        Exception.__init__(self, "gone")


BREAKS = [
    CUT,
    OwnError(),
    ConnectionResetError(104, "reset"),
    ConnectionAbortedError("Connection lost"),
    BrokenPipeError(32, "broken"),
    aiohttp.ClientConnectionResetError("Cannot write to closing transport"),
    aiohttp.ClientOSError(104, "reset"),
    aiohttp.ClientOSError(32, "broken"),
    raised_from(aiohttp.ClientOSError(None, "no write"), ConnectionResetError("lost")),
    ExceptionGroup("tasks", [aiohttp.ServerDisconnectedError()]),
]

OTHERS = [
    503,
    refused(),
    raised_from(refused(), ConnectionResetError(104, "in the handshake")),
    TimeoutError(),
    aiohttp.SocketTimeoutError(),
    aiohttp.ClientOSError(101, "unreachable"),
    aiohttp.ClientPayloadError("cut"),
    aiohttp.ClientConnectionError("odd"),
    # What came of the head.
    aiohttp.ServerDisconnectedError(b"HTTP/1.1 200"),
]


class ByBudget:
    """Failures as a budget counts them."""

    def __init__(self, strategy=SAFELY, **settings):
        self.budget = RetryBudget(brake_after=None)
        self.decorator = retrying(
            strategy, max_total_attempts=1, limiter=self.budget, **settings
        )

    @property
    def failures(self):
        return self.budget.failures_in_a_row


class ByHost(ByBudget):
    """Failures as one of the budgets per host counts them."""

    def __init__(self):
        budgets = RetryBudget.per_host(brake_after=None)
        self.budget = budgets.budget_for("localhost:80")
        self.decorator = retrying(SAFELY, max_total_attempts=1, limiter=budgets)


class ByBreaker:
    """Failures as a circuit breaker counts them."""

    def __init__(self, strategy=None, **settings):
        self.breaker = CircuitBreaker(
            **{"minimum_request_threshold": 100, "counter_sliding_window": 1e6}
            | settings
        )
        self.decorator = CircuitBreakerClient.new_decorator(self.breaker, strategy)

    @property
    def failures(self):
        return self.breaker.event_count.failure


COUNTERS = pytest.mark.parametrize("counter", [ByBudget, ByHost, ByBreaker])


async def counted(counter, *calls):
    """Make calls, each from one time to another, and return how many have failed."""
    answers = [
        answer if callable(answer) else after(end - begin, answer)
        for begin, end, answer in calls
    ]

    async def call(client, begin):
        await asyncio.sleep(begin)
        with suppress(Exception):
            await client.get(URL)

    async with session(answers, counter.decorator) as client:
        await asyncio.gather(*[call(client, begin) for begin, *_ in calls])
    return counter.failures


@COUNTERS
@pytest.mark.parametrize("cause", BREAKS, ids=repr)
async def test_connections_that_break_together_are_one_failure(counter, cause):
    """However it shows; some began before others."""
    calls = [(begin, 5.0, cause) for begin in range(5)]

    assert 1 == await counted(counter(), *calls)


@COUNTERS
@pytest.mark.parametrize("outcome", OTHERS, ids=repr)
async def test_all_else_counts_each(counter, outcome):
    """Statuses, timeouts, refused connections, and answers that had begun."""
    calls = [(begin, 5.0, outcome) for begin in range(5)]

    assert 5 == await counted(counter(), *calls)


@COUNTERS
async def test_a_request_that_began_after_the_failure_counts(counter):
    """Also one that began in that very moment, as by a coarse clock a retry may."""
    calls = [(0.0, 5.0, CUT), (5.0, 6.0, CUT), (5.5, 6.5, CUT), (6.5, 7.0, CUT)]

    assert 3 == await counted(counter(), *calls)


@COUNTERS
async def test_any_failure_that_counts_begins_a_round(counter):
    """A break after a 503 that came meanwhile says nothing more."""
    calls = [(0.0, 5.0, 503), (1.0, 6.0, CUT), (5.5, 7.0, CUT), (6.5, 8.0, 503)]

    assert 3 == await counted(counter(), *calls)


@COUNTERS
async def test_a_break_that_is_not_counted_begins_no_round(counter):
    """Otherwise breaks one after the other would never count."""
    calls = [(0.0, 5.0, CUT), (1.0, 6.0, CUT), (5.5, 7.0, CUT)]

    assert 2 == await counted(counter(), *calls)


@pytest.mark.parametrize(("outcome", "state"), [(CUT, CLOSED), (503, OPEN)])
async def test_a_row_of_failures_is_counted_in_rounds(outcome, state):
    """Ten calls that one restart cuts open no circuit; five 503s do."""
    counter = ByBreaker(consecutive_failures=5, failure_rate_threshold=1.0)
    calls = [(begin / 2, 5.0, outcome) for begin in range(10)]

    await counted(counter, *calls)

    assert state is counter.breaker.state


async def test_breaks_one_after_the_other_are_a_row():
    """The last of five opens it."""
    counter = ByBreaker(consecutive_failures=5, failure_rate_threshold=1.0)
    calls = [(begin, begin + 1.0, CUT) for begin in range(5)]

    assert 4 == await counted(counter, *calls[:4])
    assert CLOSED is counter.breaker.state
    await counted(
        counter, *[(begin + 9.0, end + 9.0, CUT) for begin, end, _ in calls[:1]]
    )
    assert OPEN is counter.breaker.state


class SlowVerdict(CircuitBreakerStrategy):
    """Takes its time."""

    async def should_report_as_success(self, ctx, cause):
        await asyncio.sleep(10.0)
        return False


class SlowDecision(RetryStrategy):
    """Takes its time."""

    async def should_retry(self, ctx, cause):
        await asyncio.sleep(10.0)
        return NOW


@pytest.mark.parametrize(
    "counter", [ByBudget(SlowDecision()), ByBreaker(SlowVerdict())], ids=type
)
async def test_the_time_of_the_failure_counts_not_that_of_the_report(counter):
    """A strategy may take longer than the next request."""
    calls = [(0.0, 1.0, CUT), (2.0, 3.0, CUT)]

    assert 2 == await counted(counter, *calls)


@client_decorator
async def translating(delegate, ctx, request):
    """Raise what no log has heard of, after a wait."""
    await asyncio.sleep(1.0)
    raise ConnectionResetError


@COUNTERS
async def test_what_a_decorator_raises_has_failed_now(counter):
    """Nothing else is known of it."""
    begun = counter()
    async with session([], translating, begun.decorator) as client:
        for _ in range(2):
            await asyncio.gather(
                *[client.get(URL) for _ in range(3)], return_exceptions=True
            )

    assert 2 == begun.failures


async def test_failure_that_no_record_has_is_one_of_now():
    """As one that is told before it is written."""
    call = call_of(begin())
    await asyncio.sleep(2.0)

    assert 2.0 == failed_at(call, call.outcome, CUT)


class Held:
    """A connection that a body is still to come from."""

    def add_callback(self, callback):
        pass

    def close(self):
        pass


async def test_a_body_that_is_cut_fails_when_it_is_cut():
    """Not when its headers came."""

    async def cut(ctx, request):
        loop = asyncio.get_running_loop()
        response = unending(request)
        response._connection = Held()
        error = aiohttp.ClientPayloadError("cut")
        loop.call_later(5.0, response.content.set_exception, error)
        return response

    counter = ByBudget(buffer_response=True)

    assert 1 == await counted(counter, (0.0, 0.0, cut), (2.0, 6.0, CUT))


class TestCircuitBreaker:
    """The circuit breaker counts in rounds."""

    async def test_listeners_hear_of_what_is_counted(self):
        """And of nothing else, so that processes that share circuits do not either."""
        heard = []

        class Listener(CircuitBreakerListener):
            def on_event_count_updated(self, circuit_breaker, event_count):
                heard.append(event_count.failure)

        await counted(ByBreaker(listeners=[Listener()]), *[(0.0, 1.0, CUT)] * 9)

        assert [1] == heard

    async def test_a_trial_that_breaks_opens_the_circuit(self):
        """Whatever was counted before."""
        counter = ByBreaker(minimum_request_threshold=2, circuit_open_window=10.0)
        begun = [(0.0, 1.0, CUT), (1.0, 2.0, CUT), (12.0, 13.0, CUT)]
        await counted(counter, *begun)

        assert OPEN == counter.breaker.state
        assert 10.0 == counter.breaker.retry_in

    async def test_a_closed_circuit_counts_anew(self):
        """Rounds of before the outage are over."""
        counter = ByBreaker(minimum_request_threshold=2, circuit_open_window=10.0)
        begun = [(0.0, 1.0, CUT), (1.0, 2.0, CUT), (12.0, 13.0, 200), (14.0, 15.0, CUT)]

        assert 1 == await counted(counter, *begun)
        assert CLOSED == counter.breaker.state

    async def test_its_own_clock_says_nothing_of_rounds(self):
        """They go by the time of the event loop, as logs do."""
        counter = ByBreaker(clock=lambda: 1e6)

        assert 1 == await counted(counter, *[(0.0, 1.0, CUT)] * 3)
        assert 2 == await counted(counter, *[(0.0, 1.0, CUT)] * 3)

    async def test_a_subclass_is_told_of_each_failure_with_its_permit(self):
        """What it hands on is counted in rounds; by hand each counts."""
        permits = []

        class Own(CircuitBreaker):
            def try_request(self):
                permits.append(super().try_request())
                return permits[-1]

            def on_failure(self, permit=None):
                assert permit is None or permit in permits
                told.append(permit)
                super().on_failure(permit)

        told = []
        counter = ByBreaker()
        counter.breaker = breaker = Own(minimum_request_threshold=100)
        counter.decorator = CircuitBreakerClient.new_decorator(breaker)

        assert 1 == await counted(counter, *[(0.0, 1.0, CUT)] * 3)
        assert permits == told
        breaker.on_failure(permits[0])
        breaker.on_failure()
        assert 3 == counter.failures

    async def test_outside_of_retries_the_last_attempt_counts(self):
        """That is the request that broke, however long ago its call began."""
        counter = ByBreaker()
        answers = [503, 503, after(1.0, CUT), after(1.0, CUT)]
        retry = retrying(RetryStrategy.failsafe(), max_total_attempts=2)
        async with session(answers, retry, counter.decorator) as client:
            calls = [client.get(URL) for _ in range(2)]
            await asyncio.gather(*calls, return_exceptions=True)

        assert 1 == counter.failures

    async def test_a_call_that_began_long_ago_counts_where_its_last_attempt_is_new(
        self,
    ):
        """Another call has failed in between."""
        counter = ByBreaker()
        retry = retrying(5.0, max_total_attempts=2)
        answers = [503, 503, 503, after(1.0, ConnectionResetError())]

        async def call(client, method):
            with suppress(ConnectionResetError):
                await client.request(method, URL)

        # The first call is answered 503 twice, and ends at 5 s; the other goes on.
        async with session(answers, retry, counter.decorator) as client:
            one = asyncio.create_task(call(client, "GET"))
            await asyncio.sleep(1.0)
            await asyncio.gather(one, call(client, "GET"))

        assert (7.0, 2) == (now(), counter.failures)


class TestSharedBudget:
    """Processes that share a budget count in rounds, each for itself."""

    async def test_a_break_that_is_not_counted_is_not_told(self):
        """Others hear of one failure, not of nine."""
        redis = FakeRedis(latency=0.25)
        one, other = (
            SharedRetryBudget(redis, "orders", capacity=20.0) for _ in range(2)
        )
        answers = [after(1.0, CUT)] * 9
        decorator = retrying(SAFELY, max_total_attempts=1, limiter=one)
        async with session(answers, decorator) as client:
            await asyncio.gather(
                *[client.get(URL) for _ in range(9)], return_exceptions=True
            )
            await asyncio.sleep(2.0)
        retry = retrying(SAFELY, max_total_attempts=2, limiter=other)
        async with session([503, 200], retry) as client:
            response = await client.get(URL)

        assert 200 == response.status
        assert 1 == one.failures_in_a_row


async def test_functions_count_in_the_same_way():
    """By the exception that they raise."""
    breaker, budget = CircuitBreaker(), RetryBudget()

    @rpc(
        CircuitBreakerRpcClient.new_decorator(breaker),
        RetryingRpcClient.new_decorator(SAFELY, limiter=budget),
        idempotent=True,
    )
    async def load():
        await asyncio.sleep(1.0)
        if now() < 1.5:
            raise ConnectionResetError(104, "reset")
        return "loaded"

    results = await asyncio.gather(*[load() for _ in range(9)])

    assert ["loaded"] * 9 == results
    assert (9, 1) == (breaker.event_count.success, breaker.event_count.failure)
