"""The decorator that lets requests out at a rate."""

import asyncio
import copy
import pickle

import aiohttp
import pytest
from calls import raising
from chains import (
    URL,
    Scripted,
    after,
    connected,
    now,
    retrying,
    session,
    status_and_log,
    twice,
)

from aioretry_smithy import (
    AttemptTimeoutError,
    CircuitBreaker,
    CircuitBreakerClient,
    RateLimit,
    RateLimitError,
    RateLimitingClient,
    RequestLog,
    RetryBudget,
    RetryStopReason,
    SessionBuilder,
    client_decorator,
    is_unprocessed,
    new_response,
    unwrap,
)

limiting = RateLimitingClient.new_decorator


async def end_of(client):
    """Make a call; return its end and what it brought."""
    try:
        async with client.get(URL) as response:
            return now(), response.status
    except aiohttp.ClientError as error:
        return now(), type(error)


class TestTurns:
    """Requests go out when their turn has come."""

    async def test_a_request_whose_turn_comes_too_late_is_refused_at_once(self):
        """It says when it may be sent; a turn exactly at the timeout is in time."""
        limit = RateLimit(1)
        async with session([200, 201, 202], limiting(limit, timeout=2.0)) as client:
            calls = [asyncio.create_task(end_of(client)) for _ in range(3)]
            await asyncio.sleep(0)
            with pytest.raises(RateLimitError) as caught:
                await client.get(URL)

            assert 0.0 == now()
            assert [(0, 200), (1, 201), (2, 202)] == await asyncio.gather(*calls)

        error = caught.value
        words = "no turn within the timeout of 2.0 s; next in 3.000 s"
        assert f"RateLimit(1, 1.0): {words}" == str(error)
        assert "within the timeout of 2.0 s" == error.missed
        assert (limit, 3.0, 3.0) == (error.limit, error.retry_in, error.retry_after)
        assert is_unprocessed(error)
        log = RequestLog.of(error)
        assert (False, RateLimitError) == (log.sent, type(log.response_cause))

    @pytest.mark.parametrize("rate", [10, 49, 100])
    @pytest.mark.parametrize("began", [0.0, 0.1, 98765.4321])
    async def test_a_turn_that_is_a_sum_of_floats_is_in_time_too(self, rate, began):
        """A hundred times 0.01 s are more than 1 s."""
        await asyncio.sleep(began)
        chain = limiting(RateLimit(rate, burst=1), timeout=1.0)
        async with session([200] * (rate + 1), chain) as client:
            ends = await asyncio.gather(*(end_of(client) for _ in range(rate + 3)))

        expected = [200] * (rate + 1) + [RateLimitError] * 2
        assert expected == [what for _, what in ends]

    async def test_a_retrying_client_waits_for_the_turn(self):
        """No breaker and no budget counts the refusal."""
        breaker = CircuitBreaker(minimum_request_threshold=1)
        budget = RetryBudget(brake_after=1)
        chain = (
            limiting(RateLimit(1), timeout=0.5),
            CircuitBreakerClient.new_decorator(breaker),
            retrying(0.0, limiter=budget),
        )
        async with session([200, 201], *chain) as client:
            ends = await asyncio.gather(end_of(client), end_of(client))

        assert [(0, 200), (1.0, 201)] == ends
        assert (0, 0) == (breaker.event_count.failure, budget.failures_in_a_row)

    async def test_a_retrying_client_stops_where_the_turn_is_past_the_deadline(self):
        """Further attempts would be refused as well."""
        chain = limiting(RateLimit(1, per=60.0)), retrying(0.0)
        async with session([200], *chain, timeout=10.0) as client:
            await end_of(client)
            with pytest.raises(RateLimitError) as caught:
                await client.get(URL)

        log = RequestLog.of(caught.value)
        assert RetryStopReason.REFUSED == log.stop_reason
        assert 1 == log.total_attempts

    @pytest.mark.parametrize(
        ("longest", "missed"),
        [
            (None, "before the deadline of the call (10.0 s)"),
            (5.0, "within the timeout of 5.0 s"),
            (7.0, "before the deadline of the call (10.0 s)"),
            (0.0, "within the timeout of 0.0 s"),
        ],
    )
    async def test_a_refusal_names_the_first_end_that_its_turn_misses(
        self, longest, missed
    ):
        """The call had 4 of its 10 s behind it."""

        @client_decorator
        async def late(delegate, ctx, request):
            await asyncio.sleep(4.0)
            return await delegate.execute(ctx, request)

        limit = RateLimit(1, per=60.0)
        chain = limiting(limit, timeout=longest), late
        async with session([200], *chain, timeout=10.0) as client:
            await end_of(client)
            with pytest.raises(RateLimitError) as caught:
                await client.get(URL)

        error = caught.value
        assert f"{limit!r}: no turn {missed}; next in 56.000 s" == str(error)
        copies = copy.copy(error), pickle.loads(pickle.dumps(error))
        assert [missed, missed] == [each.missed for each in copies]

    async def test_a_turn_that_moves_away_is_refused_in_the_end(self):
        """Another answer may say that nothing is left for longer."""
        answers = [
            after(0.5, (200, {"RateLimit": '"a";r=0;t=60'}, b"")),
            (201, {"RateLimit": '"a";r=0;t=1'}, b""),
        ]
        limit = RateLimit.from_headers()
        async with session(answers, limiting(limit, timeout=2.0)) as client:
            slow = asyncio.create_task(end_of(client))
            await asyncio.sleep(0)
            ends = [await end_of(client), await end_of(client), await slow]

        assert [(0, 201), (2.0, RateLimitError), (0.5, 200)] == ends


class TestLog:
    """The log shows the wait for a turn."""

    async def test_an_attempt_after_a_wait_does_not_begin_after_its_end(self):
        """0.6 + (1.8 - 0.6) is more than 1.8."""
        chain = limiting(RateLimit(1, per=1.8)), retrying(0.6)
        _, log = await status_and_log(session([503, 200], *chain))

        assert 0.0 == log.children[1].duration

    async def test_the_wait_before_the_first_attempt_is_that_of_the_call(self):
        """The attempt begins when its turn has come, and so does its timeout."""
        chain = limiting(RateLimit(1, per=5.0)), retrying(0.5, attempt_timeout=2.0)
        async with session([200, after(3.0, 200), 200], *chain) as client:
            await end_of(client)
            response = await client.get(URL)
            log = RequestLog.of(response)

        first, second = log.children
        assert (5.0, "rate_limit") == (log.delay, log.delay_source)
        assert (5.0, 2.0) == (first.started - log.started, first.duration)
        assert AttemptTimeoutError is type(first.response_cause)
        assert (3.0, "rate_limit") == (first.delay, first.delay_source)
        assert 10.0 == second.started - log.started
        assert "first waited 5.000 s (rate_limit)" in log.render()

    async def test_a_wait_within_an_attempt_is_part_of_that(self):
        """A decorator that sends twice waits twice."""
        chain = limiting(RateLimit(1, per=5.0)), twice, retrying(0.5)
        async with session([200, 200], *chain) as client:
            response = await client.get(URL)
            log = RequestLog.of(response)

        (only,) = log.children
        assert (None, None, 5.0) == (log.delay, only.delay, only.duration)


class TestDecorators:
    """One rate for all, or one for each host."""

    @pytest.mark.usefixtures("draw")
    async def test_each_host_has_a_rate_of_its_own(self):
        """The headers of one host hold for that one."""
        closed = (429, {"Retry-After": "3"}, b"")
        decorator = RateLimitingClient.new_per_host_decorator(
            lambda key: RateLimit.from_headers()
        )
        async with Scripted([closed, 200, 200], decorator) as scripted:
            await scripted.get("http://a/x")
            await scripted.get("http://b/x")

            assert 0.0 == now()

            await scripted.get("http://a/x")
            limits = unwrap(scripted.session, RateLimitingClient).limits

        assert 3.0 == now()
        assert ["b:80", "a:80"] == [*limits]

    async def test_an_answer_to_a_request_without_a_host_says_nothing(self):
        """A decorator inside may have answered it; no limit learns from that."""

        @client_decorator
        async def answering(delegate, ctx, request):
            return new_response(request)

        limiting = RateLimitingClient.new_per_host_decorator(
            lambda key: RateLimit.from_headers()
        )
        async with (
            connected(None, answering, limiting) as session,
            session.get("/orders") as response,
        ):
            limits = unwrap(session, RateLimitingClient).limits

        assert (200, {}) == (response.status, dict(limits))

    async def test_a_factory_that_makes_no_limit_is_found_out(self):
        """By the caller of the request."""
        decorator = RateLimitingClient.new_per_host_decorator(lambda key: 0)
        async with Scripted([], decorator) as scripted:
            with pytest.raises(ValueError) as caught:
                await scripted.get()

        expected = "a number > 0, a RateLimit, or a list of them"
        assert f"factory('localhost:80'): 0 (expected: {expected})" == str(caught.value)

    @pytest.mark.parametrize(
        ("argument", "options"),
        [
            ("limit", {"limit": 0}),
            ("limit", {"limit": True}),
            ("timeout", {"limit": RateLimit(1), "timeout": -1}),
            ("timeout", {"limit": RateLimit(1), "timeout": "1"}),
        ],
    )
    def test_bad_arguments_are_refused(self, argument, options):
        """Where the decorator is made."""
        with pytest.raises(ValueError, match=f"^{argument}: "):
            limiting(**options)

    def test_a_factory_has_to_be_one(self):
        """A limit is not one."""
        with pytest.raises(ValueError, match="^factory: RateLimit"):
            RateLimitingClient.new_per_host_decorator(RateLimit(1))

    async def test_it_describes_itself(self):
        """With its rate, and how long it waits."""
        builder = SessionBuilder().decorator(limiting(RateLimit(10), timeout=2.0))

        assert (
            "RateLimitingClient(RateLimit(10, 1.0), timeout=2.0)"
        ) in builder.describe()
        async with builder.build() as client:
            assert ["all"] == [*unwrap(client, RateLimitingClient).limits]


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (429, {"Retry-After": "8"}),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "8"}),
    ],
)
async def test_rate_hears_of_a_raised_reset(status, headers):
    """Requests are kept back until then, and perhaps a little longer."""
    limit = RateLimit.from_headers()
    answers = [(status, headers, b""), 200]
    async with session(answers, raising, limiting(limit)) as client:
        with pytest.raises(aiohttp.ClientResponseError):
            await client.get(URL)
        await client.get(URL)

    assert 8.0 <= now() <= 9.0
