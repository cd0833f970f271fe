"""One request that tries whether an endpoint is well again.

Of the cases of endpoints.md (f): 82 to 86.
"""

import asyncio

import pytest
from balanced import IN_ORDER, Fleet, at, call, group_of, out, state_of
from chains import SAFELY, after, refused, retrying, silence

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    DynamicEndpointGroup,
    HedgingClient,
    OutlierDetection,
    RetryConfig,
    client_decorator,
    request_options,
)
from aioretry_smithy._endpoints.ejection import may_try

pytestmark = pytest.mark.usefixtures("shortest_ejections")

ONE_ATTEMPT = RetryConfig(SAFELY, max_total_attempts=1)


async def put_out(client, *, until=5.0):
    """Let the first endpoint be ejected, and its trial be due."""
    await call(client)
    await at(until)


class TestOne:
    """One trial at a time."""

    async def test_one_among_ten(self):
        """Case 82: exactly one of ten concurrent calls."""
        fleet = Fleet(a=[refused(), after(1.0, 200)])
        async with fleet.session(group_of("ab"), retrying(SAFELY)) as client:
            await put_out(client)
            fleet.asked.clear()
            results = await asyncio.gather(*(call(client) for _ in range(10)))

        assert [200] * 10 == [status for status, _ in results]
        assert "abbbbbbbbb" == fleet.text

    async def test_not_before_its_time(self):
        """Case 82: out for 5 s."""
        fleet = Fleet(a=[refused(), 200])
        async with fleet.session(group_of("ab"), retrying(SAFELY)) as client:
            await put_out(client, until=4.999)
            await call(client)
            await at(5.0)
            await call(client)

        assert "abba" == fleet.text

    async def test_success_brings_it_back_with_its_latency(self):
        """Case 83: what was known before is forgotten."""
        fleet = Fleet(a=[after(3.0, refused()), after(0.5, 200)])
        group = group_of("ab")
        async with fleet.session(group, retrying(SAFELY)) as client:
            await put_out(client, until=9.0)
            await call(client)

        state = state_of(group, "a")
        assert ({}, None, 0) == (out(group), state.reason, state.times)
        assert 0.5 == pytest.approx(state.latency)

    async def test_failure_with_a_hint_is_a_failed_trial(self):
        """Case 84: the time doubles as ever."""
        fleet = Fleet(a=[refused(), (503, {"Retry-After": "1"}, b"")])
        group = group_of("ab")
        async with fleet.session(group, retrying(0.0)) as client:
            await put_out(client)
            await call(client)

        assert 15.0 == state_of(group, "a").ejected_until

    async def test_cancelled_one_is_no_information(self):
        """Case 85: the next call is the trial."""
        fleet = Fleet(a=[refused(), after(2.0, 200), 200])
        group = group_of("ab")
        async with fleet.session(group, retrying(SAFELY)) as client:
            await put_out(client)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0):
                    await client.get("/orders")
            state = state_of(group, "a")
            assert ({"a": "connect_failures"}, 5.0, 0) == (
                out(group),
                state.ejected_until,
                state.in_flight,
            )
            await call(client)

        assert ("abaa", {}) == (fleet.text, out(group))

    async def test_refusal_of_ours_is_no_information(self):
        """Case 85: nothing was sent."""
        breaker = CircuitBreaker("all")
        fleet = Fleet(a=[refused(), 200])
        group = group_of("ab")
        client = fleet.session(
            group, CircuitBreakerClient.new_decorator(breaker), retrying(SAFELY)
        )
        async with client:
            await put_out(client)
            breaker.enter_state(CircuitState.FORCED_OPEN)
            await call(client)
            breaker.enter_state(CircuitState.CLOSED)
            await call(client)

        assert ("aba", {}) == (fleet.text, out(group))

    async def test_one_that_left_and_came_back_is_tried(self):
        """Its trial ends wherever it is listed."""
        fleet = Fleet(a=[refused(), after(1.0, 200)])
        group = DynamicEndpointGroup(
            ["http://a.example", "http://b.example"], selection=IN_ORDER
        )
        async with fleet.session(group, retrying(SAFELY)) as client:
            await put_out(client)
            trial = asyncio.create_task(call(client))
            await asyncio.sleep(0.5)
            group.set_endpoints(["http://b.example"])
            await trial
            group.set_endpoints(["http://a.example", "http://b.example"])

        assert {} == out(group)


class TestWhich:
    """Which requests may be a trial."""

    @pytest.mark.parametrize(
        ("method", "options", "block", "moment", "expected"),
        [
            *[("GET", {}, {}, 5.0, "a"), ("POST", {}, {}, 5.0, "b")],
            *[("PUT", {}, {}, 5.0, "a"), ("PATCH", {}, {}, 5.0, "b")],
            ("DELETE", {}, {}, 5.0, "a"),
            # Any where none such comes for a further ejection_time.
            *[("POST", {}, {}, 9.9, "b"), ("POST", {}, {}, 10.0, "a")],
            ("POST", {}, {"idempotent": True}, 5.0, "a"),
            ("GET", {}, {"idempotent": False}, 5.0, "b"),
            # A body that is spent after the trial cannot be sent elsewhere.
            *[
                ("PUT", {"data": b"b"}, {}, 5.0, "a"),
                ("PUT", {"json": {}}, {}, 5.0, "a"),
            ],
            ("PUT", {"data": "generator"}, {}, 5.0, "b"),
        ],
    )
    async def test_one_that_may_be_sent_again(
        self, method, options, block, moment, expected
    ):
        """Case 86: the trial may lose it."""

        async def body():
            yield b"body"

        if options.get("data") == "generator":
            options = {"data": body()}
        fleet = Fleet(a=[refused(), 200])
        async with fleet.session(group_of("ab"), retrying(SAFELY)) as client:
            await put_out(client, until=moment)
            fleet.asked.clear()
            with request_options(**block):
                await call(client, method=method, **options)

        assert expected == fleet.text

    async def test_first_request_of_a_call_alone(self):
        """A retry has failed once already."""
        fleet = Fleet(a=[refused(), 200], b=[200, after(4.0, 503), 503], c=200)
        group = group_of("abc")
        async with fleet.session(group, retrying(0.0)) as client:
            await call(client)
            await at(3.0)
            await call(client)

        assert ("abbc", {"a": "connect_failures"}) == (fleet.text, out(group))

    async def test_no_hedge(self):
        """It is sent because something is late."""
        fleet = Fleet(a=[refused(), 200], b=[200, after(4.0, 200)])
        group = group_of("abc")
        hedging = HedgingClient.new_decorator(3.0, max_hedges=1)
        async with fleet.session(group, hedging, retrying(SAFELY)) as client:
            await call(client)
            await at(4.0)
            status, _ = await call(client)

        assert (200, "abbc") == (status, fleet.text)
        assert {"a": "connect_failures"} == out(group)


class TestTime:
    """How long a trial may take."""

    async def test_three_seconds_where_an_attempt_has_no_limit(self):
        """Then the call goes elsewhere."""
        fleet = Fleet(a=[refused(), silence])
        group = group_of("ab")
        async with fleet.session(group, retrying(SAFELY)) as client:
            await put_out(client)
            status, log = await call(client)

        assert (200, 8.0) == (status, log.started + log.duration)
        assert (
            "TimeoutError: no answer to a trial in time",
            {"a": "trial_failed"},
        ) == (_text(log.children[0]), out(group))
        assert 18.0 == state_of(group, "a").ejected_until
        assert 0 == state_of(group, "a").in_flight

    async def test_time_of_the_attempt_where_it_has_one(self):
        """The trial is cut by that, not after 3 s."""
        fleet = Fleet(a=[refused(), silence])
        group = group_of("ab")
        client = fleet.session(group, retrying(SAFELY, attempt_timeout=4.0))
        async with client:
            await put_out(client)
            status, log = await call(client)

        assert (200, 9.0) == (status, log.started + log.duration)
        assert {"a": "trial_failed"} == out(group)

    async def test_ends_at_the_headers(self):
        """No timer is left once there is an answer."""
        fleet = Fleet(a=[refused(), after(2.0, 200)])
        group = group_of("ab")
        loop = asyncio.get_running_loop()
        async with fleet.session(group, retrying(SAFELY)) as client:
            await put_out(client)
            await call(client)
            left = [each for each in loop._scheduled if not each.cancelled()]
            await asyncio.sleep(5.0)

        assert ([], {}) == (left, out(group))

    async def test_is_not_cut_where_nothing_retries(self):
        """The request goes on; the trial has failed all the same, at 3 s."""
        fleet = Fleet(a=[refused(), after(10.0, 200)])
        group = group_of("ab")
        async with fleet.session(group) as client:
            await put_out(client)
            task = asyncio.create_task(call(client))
            await at(8.0)
            await asyncio.sleep(0.0)
            state = state_of(group, "a")
            failed = out(group), state.ejected_until
            status, log = await task

        assert ({"a": "trial_failed"}, 18.0) == failed
        assert (200, 15.0) == (status, log.started + log.duration)
        # By its answer it is not back: that was too late.
        assert ({"a": "trial_failed"}, 0) == (out(group), state.in_flight)

    async def test_trial_that_was_cut_by_two(self):
        """One who cancels at the same time has his way."""
        fleet = Fleet(a=[refused(), silence])
        group = group_of("ab")
        async with fleet.session(group, retrying(SAFELY)) as client:
            await put_out(client)
            task = asyncio.create_task(client.get("/orders"))
            await at(8.0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        assert 0 == state_of(group, "a").in_flight
        assert "ab" == fleet.text[:2]
        assert state_of(group, "a").trial is None

    async def test_cut_within_a_timeout_of_the_callers(self):
        """That counts its own cancellations alone."""
        fleet = Fleet(a=[refused(), silence])
        async with fleet.session(group_of("ab"), retrying(SAFELY)) as client:
            await put_out(client)
            async with asyncio.timeout(4.0):
                status, _ = await call(client)
            task = asyncio.current_task()

        assert (200, 0) == (status, task.cancelling())

    async def test_one_that_swallows_it_is_left(self):
        """A decorator further in that turns the cut into a failure of its own."""

        @client_decorator
        async def swallow(delegate, ctx, request):
            try:
                return await delegate.execute(ctx, request)
            except asyncio.CancelledError:
                raise ZeroDivisionError from None

        fleet = Fleet(a=[refused(), silence])
        group = group_of("ab")
        async with fleet.session(group, swallow, retrying(SAFELY)) as client:
            await put_out(client)
            await call(client)
            task = asyncio.current_task()

        assert (0, 0) == (task.cancelling(), state_of(group, "a").in_flight)
        assert state_of(group, "a").trial is None


def _text(log):
    return f"{type(log.response_cause).__name__}: {log.response_cause}"


class TestHedged:
    """Trials beside hedges."""

    async def test_trial_that_lost_its_race_has_failed(self):
        """As no information it would draw the next call into a black hole."""
        fleet = Fleet(a=[refused(), silence])
        group = group_of("ab")
        hedging = HedgingClient.new_decorator(1.0, max_hedges=1)
        async with fleet.session(group, hedging, retrying(SAFELY)) as client:
            await put_out(client)
            status, log = await call(client)

        assert (200, 6.0) == (status, log.started + log.duration)
        assert ({"a": "trial_failed"}, 16.0) == (
            out(group),
            state_of(group, "a").ejected_until,
        )
        assert 0 == state_of(group, "a").in_flight

    async def test_trial_that_is_cut_leaves_the_race_to_the_hedge(self):
        """Its own task is cut, not the caller's."""
        fleet = Fleet(a=[refused(), silence], b=[200, after(4.0, 200)])
        group = group_of("ab")
        hedging = HedgingClient.new_decorator(1.0, max_hedges=1)
        async with fleet.session(group, hedging, retrying(SAFELY)) as client:
            await put_out(client)
            status, log = await call(client)

        assert (200, 10.0) == (status, log.started + log.duration)
        assert {"a": "trial_failed"} == out(group)


class TestBreakerInside:
    """A circuit breaker further in that refuses the trial."""

    async def test_it_stays_out_as_long_as_the_circuit_is_open(self):
        """And ends without a trial."""
        breakers = {}

        def of_host(key):
            return breakers.setdefault(
                key,
                CircuitBreaker(
                    key, minimum_request_threshold=1, circuit_open_window=20.0
                ),
            )

        fleet = Fleet(a=[503, 200])
        detection = OutlierDetection(consecutive_failures=1)
        group = group_of("ab", outlier_detection=detection)
        client = fleet.session(
            group, CircuitBreakerClient.new_per_host_decorator(of_host), retrying(0.0)
        )
        async with client:
            await put_out(client)
            status, _ = await call(client)
            first = out(group), state_of(group, "a").ejected_until
            await at(20.0)
            await asyncio.gather(call(client), call(client))

        assert (200, ({"a": "circuit_open"}, 20.0)) == (status, first)
        assert {} == out(group)
        assert "abb" == fleet.text[:3]


async def test_trial_that_has_failed_is_not_given_up_later():
    """It was not cut, and its caller has lost patience."""
    fleet = Fleet(a=[refused(), silence])
    group = group_of("ab")
    async with fleet.session(group) as client:
        await put_out(client)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5.0):
                await client.get("/orders")

    state = state_of(group, "a")
    assert (18.0, "trial_failed", 0) == (
        state.ejected_until,
        state.reason,
        state.in_flight,
    )


async def test_endpoint_that_is_well_needs_none():
    """Nor one of a group without detection."""
    seen = []
    groups = group_of("a"), group_of("a", outlier_detection=None)

    @client_decorator
    async def look(delegate, ctx, request):
        seen.extend(may_try(state_of(each, "a"), ctx, request) for each in groups)
        return await delegate.execute(ctx, request)

    async with Fleet().session(groups[0], look) as client:
        await call(client)

    assert [False, False] == seen


@pytest.mark.parametrize(
    ("settings", "block", "method", "due"),
    [
        pytest.param({}, {"retry": RetryConfig.no_retry()}, "GET", 5.0, id="no retry"),
        pytest.param({}, {"retry": ONE_ATTEMPT}, "GET", 5.0, id="a block of one"),
        pytest.param({"max_total_attempts": 1}, {}, "GET", 5.0, id="a client of one"),
        pytest.param({}, {}, "POST", 10.0, id="a POST"),
    ],
)
async def test_is_not_cut_where_it_would_not_be_sent_again(
    settings, block, method, due
):
    """The caller gets his answer, though the trial has failed."""
    fleet = Fleet(a=[refused(), after(10.0, 200)])
    group = group_of("ab")
    async with fleet.session(group, retrying(SAFELY, **settings)) as client:
        await put_out(client, until=due)
        with request_options(**block):
            status, log = await call(client, method=method)

    assert (200, {"a": "trial_failed"}, 1) == (status, out(group), log.total_attempts)
    assert due + 10.0 == log.started + log.duration
