"""Endpoints that are left alone because of how their requests end.

Of the cases of endpoints.md (f): 66, 67, 76 to 93.
"""

import asyncio
import math

import aiohttp
import pytest
from balanced import (
    IN_ORDER,
    ROUND_ROBIN,
    Fleet,
    at,
    call,
    group_of,
    out,
    outcomes,
    state_of,
    url_of,
)
from calls import raised
from chains import SAFELY, after, now, pass_on, refused, retrying

from aioretry_smithy import (
    CircuitBreakerRule,
    CircuitBreakerStrategy,
    ConcurrencyLimitingClient,
    DynamicEndpointGroup,
    Endpoint,
    EndpointGroup,
    EndpointGroupListener,
    OutlierDetection,
    UnprocessedRequestError,
    client_decorator,
)

pytestmark = pytest.mark.usefixtures("shortest_ejections")

ROW = "consecutive_failures"
CONNECT = "connect_failures"
RATE = "failure_rate"
ASIDE = "retry_after"
ONE = OutlierDetection(consecutive_failures=1)
USUAL = OutlierDetection()
SIX_OF_TEN = [503, 200, 503, 503, 200, 503, 200, 200, 503, 503]
SOME_REFUSED = [refused(), refused(), 200, refused(), refused(), refused()]
THROTTLED = CircuitBreakerStrategy.on_server_error_status(count_throttling=False)


def hint(status, seconds="7"):
    """Return an answer that says when to come back."""
    return status, {"Retry-After": seconds}, b""


def raised_later(status, **settings):
    """Raise for a status, as a decorator further in does."""
    return after(0.0, raised(status, **settings))


PROXY = raised_later(500, kind=aiohttp.ClientHttpProxyError)
REASONS = [
    # Cases 76 and 78: five failures in a row, statuses of 5xx and exceptions.
    *[(USUAL, 503, 4, None), (USUAL, 503, 5, ROW)],
    (OutlierDetection(consecutive_failures=2), 503, 2, ROW),
    (
        OutlierDetection(failure_rate_threshold=1.0),
        [503, 503, 503, 503, 200] * 4,
        20,
        None,
    ),
    *[(ONE, 500, 1, ROW), (ONE, 501, 1, ROW), (ONE, 599, 1, ROW)],
    *[
        (ONE, aiohttp.ServerDisconnectedError(), 1, ROW),
        (ONE, raised_later(500), 1, ROW),
    ],
    # Case 80: 4xx and 429 never, also where they are raised, nor errors of a proxy.
    *[(ONE, answer, 20, None) for answer in (200, 304, 400, 404, 408, 429, hint(429))],
    *[(ONE, raised_later(404), 3, None), (ONE, raised_later(429), 3, None)],
    (ONE, PROXY, 3, None),
    # Case 77: a refused connection was not sent, and would be refused again.
    *[(USUAL, refused(), 1, CONNECT), (None, refused(), 20, None)],
    (OutlierDetection(connect_failures=2), [refused(), 200, refused()], 3, None),
    (OutlierDetection(connect_failures=2), [200, refused(), refused()], 3, CONNECT),
    (OutlierDetection(connect_failures=3), SOME_REFUSED, 5, None),
    (OutlierDetection(connect_failures=3), SOME_REFUSED, 6, CONNECT),
    # Case 79: more than half of ten, not of nine, and not half.
    *[(USUAL, SIX_OF_TEN, 9, None), (USUAL, SIX_OF_TEN, 10, RATE)],
    (
        OutlierDetection(minimum_request_threshold=4, failure_rate_threshold=0.2),
        [200, 200, 200, 503],
        4,
        RATE,
    ),
    # Cases 66 and 67: by a 503 that says how long, also where that is no failure.
    *[(USUAL, hint(503), 1, ASIDE), (None, hint(503), 1, None)],
    *[(USUAL, hint(429), 1, None), (USUAL, hint(500), 1, None)],
    *[(USUAL, hint(503, "x"), 1, None), (USUAL, hint(503, "0"), 1, None)],
    (OutlierDetection(strategy=THROTTLED), hint(503), 1, ASIDE),
    # Case 87: none may be out where that is said.
    (OutlierDetection(max_ejected=0.0), refused(), 20, None),
]


@pytest.mark.parametrize(("detection", "answer", "calls", "reason"), REASONS)
async def test_why_an_endpoint_is_out(detection, answer, calls, reason):
    """After so many calls to it, of which the last may have put it out."""
    answer = [*answer] if isinstance(answer, list) else answer
    group = group_of("ab", outlier_detection=detection)
    fleet = Fleet(a=answer)
    expected = {} if reason is None else {"a": reason}

    assert expected == await outcomes(fleet, group, calls)
    assert "a" * calls == fleet.text


class TestRate:
    """The share of failures in a window."""

    async def test_window_forgets(self):
        """Case 79: what was 20 s ago does not count."""
        fleet = Fleet(a=[503, 200, 503, 503, 200, 503, 200, 200, 503, 503])
        group = group_of("ab")
        async with fleet.session(group) as client:
            for _ in range(9):
                await call(client)
            await asyncio.sleep(21.0)
            await call(client)

        assert {} == out(group)

    async def test_begins_anew_after_a_return(self):
        """What was before the ejection is forgotten."""
        detection = OutlierDetection(
            minimum_request_threshold=4, consecutive_failures=3
        )
        fleet = Fleet(a=[503, 503, 503, 200, 503])
        group = group_of("ab", outlier_detection=detection)
        async with fleet.session(group) as client:
            for _ in range(3):
                await call(client)
            await at(6.0)
            await call(client)
            await call(client)

        assert {} == out(group)
        assert "aaaaa" == fleet.text


class TestNothing:
    """What says nothing of a server."""

    @pytest.mark.parametrize(
        "failure",
        [
            UnprocessedRequestError("ours"),
            ValueError("a mistake"),
            aiohttp.InvalidURL("x"),
        ],
    )
    async def test_refusals_and_mistakes_of_ours(self, failure):
        """Case 81: nor do they end a row."""
        detection = OutlierDetection(consecutive_failures=2, connect_failures=2)
        fleet = Fleet(a=[503, failure, failure, failure, 503])
        group = group_of("ab", outlier_detection=detection)
        async with fleet.session(group) as client:
            for _ in range(4):
                await call(client)
            before = out(group)
            await call(client)

        assert ({}, {"a": "consecutive_failures"}) == (before, out(group))
        assert 0 == state_of(group, "a").in_flight

    async def test_refusal_of_a_limit_further_in(self):
        """Case 81: a queue that is full is on this side."""
        limit = ConcurrencyLimitingClient.new_decorator(1, max_pending=0)
        fleet = Fleet(a=after(1.0, 200))
        group = group_of("ab")
        async with fleet.session(group, limit) as client:
            results = await asyncio.gather(*(call(client) for _ in range(3)))

        assert [200, "a.example"] == [results[0][0], results[0][1].endpoint]
        assert {} == out(group)
        assert 0 == state_of(group, "a").in_flight

    async def test_cancelled_request(self):
        """Case 81: by the caller, at any time."""
        detection = OutlierDetection(consecutive_failures=1)
        fleet = Fleet(a=after(9.0, 200))
        group = group_of("ab", outlier_detection=detection)
        async with fleet.session(group, retrying(0.0)) as client:
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await client.get("/orders")

        assert ({}, 0) == (out(group), state_of(group, "a").in_flight)
        assert state_of(group, "a").latency is None

    async def test_body_that_cannot_be_made(self):
        """Case 81: what a generator of the caller's raises is his mistake."""

        @client_decorator
        async def read(delegate, ctx, request):
            async for _ in request.arguments["data"]:
                pass
            return await delegate.execute(ctx, request)

        async def body():
            raise TimeoutError
            yield b""

        group = group_of(
            "ab", outlier_detection=OutlierDetection(consecutive_failures=1)
        )
        async with Fleet().session(group, read) as client:
            error, _ = await call(client, method="POST", data=body())

        assert isinstance(error, TimeoutError)


class TestFloor:
    """How many may be out at once."""

    @pytest.mark.parametrize(
        ("names", "most"), [("a", 0), ("ab", 1), ("abc", 1), ("abcd", 2), ("abcde", 2)]
    )
    async def test_at_most_half(self, names, most):
        """Case 87: of 3 one, of 4 two, of 2 one, of 1 none."""
        fleet = Fleet(**dict.fromkeys(names, refused()))
        group = group_of(names, selection=ROUND_ROBIN)

        assert most == len(await outcomes(fleet, group, 50))

    async def test_weights_of_none_do_not_count(self):
        """Case 87: n is of those that may be chosen at all."""
        fleet = Fleet(**dict.fromkeys("abc", refused()))
        group = EndpointGroup.of(
            *map(url_of, "abc"),
            *(Endpoint(url_of(name), weight=0) for name in "xyz"),
            selection=ROUND_ROBIN,
        )

        assert 1 == len(await outcomes(fleet, group, 50))

    async def test_one_that_may_not_be_out_may_be_later(self):
        """Case 87: it is counted after the other has come back."""
        fleet = Fleet(a=[refused(), 200], b=refused())
        group = group_of("ab")
        async with fleet.session(group) as client:
            for _ in range(3):
                await call(client)
            first = out(group)
            await at(5.0)
            await call(client)
            back = out(group)
            fleet.answers["a"] = 503
            for _ in range(6):
                await call(client)

        assert ({"a": "connect_failures"}, {}) == (first, back)
        assert {"a": "consecutive_failures"} == out(group)

    async def test_total_outage_ends_with_the_outage(self):
        """Case 88: all are used, and the last failure is at recovery."""
        fleet = Fleet(**dict.fromkeys("abc", 503))
        group = group_of("abc", selection=ROUND_ROBIN)
        failed = []
        async with fleet.session(group, retrying(0.05, max_total_attempts=3)) as client:
            while now() < 40.0:
                if now() >= 16.0:
                    fleet.answers.clear()
                began = now()
                status, _ = await call(client)
                if status != 200:
                    failed.append(began)
                await asyncio.sleep(0.1)

        during = [name for moment, name in fleet.times if moment < 16.0]
        assert max(failed) < 16.0
        assert min(during.count(name) for name in "abc") >= 2
        assert {} == out(group)

    async def test_list_that_shrinks_to_those_that_are_out_uses_them(self):
        """All of them, for there is nothing else."""
        fleet = Fleet(a=refused(), b=refused())
        group = DynamicEndpointGroup(map(url_of, "abcd"), selection=IN_ORDER)
        async with fleet.session(group, retrying(SAFELY)) as client:
            await call(client)
            before = out(group)
            group.set_endpoints(map(url_of, "ab"))
            fleet.asked.clear()
            error, _ = await call(client)

        assert {"a", "b"} == set(before) == set(fleet.asked)
        assert isinstance(error, aiohttp.ClientConnectorError)


class Judge(CircuitBreakerStrategy):
    """A user's own strategy, which gives one verdict."""

    def __init__(self, verdict):
        self.verdict = verdict

    def should_report_as_success(self, ctx, cause):
        self.endpoint = ctx.endpoint
        if isinstance(self.verdict, BaseException):
            raise self.verdict
        return self.verdict


class AsyncJudge(Judge):
    """One that takes its time."""

    async def should_report_as_success(self, ctx, cause):
        await asyncio.sleep(1.0)
        return super().should_report_as_success(ctx, cause)


def judged(verdict, kind=Judge, names="ab"):
    """Make a group whose first failure ejects."""
    detection = OutlierDetection(consecutive_failures=1, strategy=kind(verdict))
    return group_of(names, outlier_detection=detection)


class TestStrategy:
    """What a failure is, as users say."""

    @pytest.mark.parametrize("kind", [Judge, AsyncJudge])
    @pytest.mark.parametrize("verdict", ["rubbish", 1])
    async def test_rubbish_is_refused(self, kind, verdict):
        """To the caller, never retried; the response is closed."""
        fleet = Fleet()
        group = judged(verdict, kind)
        async with fleet.session(group, retrying(SAFELY)) as client:
            error, log = await call(client)

        assert isinstance(error, ValueError)
        assert str(error).startswith("should_report_as_success: ")
        assert ("a", 1, 0) == (
            fleet.text,
            log.total_attempts,
            state_of(group, "a").in_flight,
        )

    @pytest.mark.parametrize("kind", [Judge, AsyncJudge])
    async def test_what_it_raises_of_a_trial_is_no_information(self, kind):
        """The next request is the trial."""
        group = judged(False, kind)
        fleet = Fleet()
        strategy = group._detection.strategy
        async with fleet.session(group) as client:
            await call(client)
            strategy.verdict = ZeroDivisionError()
            await at(7.0)
            await call(client)
            strategy.verdict = True
            await call(client)

        assert ("aaa", {}) == (fleet.text, out(group))

    async def test_cancelled_meanwhile(self):
        """At its await: in flight ends, a trial is given up, the response is closed."""
        group = judged(False, AsyncJudge)
        fleet = Fleet()
        async with fleet.session(group, pass_on) as client:
            await call(client)
            await at(9.0)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await client.get("/orders")
            strategy = group._detection.strategy
            strategy.verdict = True
            await call(client)

        assert ("aaa", {}) == (fleet.text, out(group))
        assert 0 == state_of(group, "a").in_flight


async def test_listener_may_use_the_group():
    """Case 92: it sees what has changed already."""
    seen = []

    class Looking(EndpointGroupListener):
        def on_ejected(self, group, endpoint, reason, until):
            seen.append((reason, until, group.states[endpoint].ejected_until))

        def on_returned(self, group, endpoint):
            seen.append(group.states[endpoint].ejected_until)

    fleet = Fleet(a=[refused(), 200])
    async with fleet.session(group_of("ab", listener=Looking())) as client:
        await call(client)
        await at(5.0)
        await call(client)

    assert [("connect_failures", 5.0, 5.0), None] == seen


async def test_raised_503_with_a_hint_sets_its_endpoint_aside():
    """For as long as it says; the call goes elsewhere without that wait."""
    group = group_of("ab")
    fleet = Fleet(a=after(0.0, raised(503, {"Retry-After": "7"})))
    async with fleet.session(group, retrying(SAFELY)) as client:
        status, log = await call(client)

        assert {"a": "retry_after"} == out(group)
        assert 7.0 == state_of(group, "a").ejected_until
    assert (200, "ab", 0.0) == (status, fleet.text, log.children[0].delay)


async def test_raised_429_with_a_hint_is_waited_for():
    """It is the service's, not one endpoint's."""
    group = group_of("ab")
    throttled = after(0.0, raised(429, {"Retry-After": "7"}))
    fleet = Fleet(a=[throttled, 200], b=throttled)
    async with fleet.session(group, retrying(SAFELY)) as client:
        _, log = await call(client)

    assert {} == out(group)
    assert 7.0 <= log.children[0].delay


async def test_raised_404_in_no_time_draws_no_traffic():
    """That a request was wrong says nothing of how quick an endpoint is."""
    estimates = []
    for answer in (404, raised(404)):
        group = group_of("ab", outlier_detection=ONE)
        fleet = Fleet(a=[after(0.1, 200), after(0.0, answer)])
        async with fleet.session(group) as client:
            for _ in range(2):
                await call(client)
        estimates.append(state_of(group, "a").latency)

    assert estimates[0] == estimates[1]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("consecutive_failures", 0, "an int >= 1"),
        ("consecutive_failures", 1.0, "an int >= 1"),
        ("connect_failures", 0, "an int >= 1"),
        ("minimum_request_threshold", 0, "an int >= 1"),
        ("counter_sliding_window", 0.0, "finite and > 0"),
        ("ejection_time", 0, "finite and > 0"),
        ("ejection_time", math.nan, "finite and > 0"),
        ("max_ejection_time", math.inf, "finite and > 0"),
        ("max_ejection_time", 4.9, ">= ejection_time, 5.0"),
        ("failure_rate_threshold", -0.1, "from 0 to 1"),
        ("failure_rate_threshold", 1.1, "from 0 to 1"),
        ("max_ejected", math.nan, "from 0 to 1"),
        ("max_ejected", None, "from 0 to 1"),
        ("strategy", "5xx", "a CircuitBreakerStrategy, or None"),
    ],
)
def test_bad_ones_are_refused(name, value, expected):
    """Each with its name, and what is expected."""
    with pytest.raises(ValueError, match=f"^{name}: ") as raised:
        OutlierDetection(**{name: value})

    assert str(raised.value).endswith(f"(expected: {expected})")


def test_ends_of_shares_are_allowed():
    """None may be out, or all but one; a rate of more than nothing, or none."""
    for share in (0, 1):
        OutlierDetection(max_ejected=share, failure_rate_threshold=share)
    OutlierDetection(strategy=CircuitBreakerRule(statuses={418}))


@pytest.mark.parametrize(
    ("share", "most"),
    [
        (0.5, [0, 0, 1, 1, 2, 2, 3, 5]),
        (0.1, [0, 0, 1, 1, 1, 1, 1, 1]),
        (1.0, [0, 0, 1, 2, 3, 4, 5, 9]),
        (0.0, [0, 0, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_how_many_may_be_out(share, most):
    """Case 87: at least one of two or more, never all, none where that is said."""
    detection = OutlierDetection(max_ejected=share)

    assert most == [detection.most_ejected(n) for n in (0, 1, 2, 3, 4, 5, 6, 10)]


def test_how_long_it_is_out():
    """Case 83: doubling up to the most, then up to a quarter more by chance."""
    detection = OutlierDetection()

    assert [5.0, 10.0, 20.0, 40.0, 60.0, 60.0, 60.0] == [
        detection.seconds_out(times, 0.0) for times in (1, 2, 3, 4, 5, 6, 10_000)
    ]
    assert [6.25, 5.625] == [detection.seconds_out(1, dice) for dice in (1.0, 0.5)]
