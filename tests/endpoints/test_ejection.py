"""Endpoints that are left alone because of how their requests end.

Of the cases of endpoints.md (f): 76 to 93.
"""

from __future__ import annotations

import asyncio
import logging

import aiohttp
import pytest
from balanced import (
    IN_ORDER,
    ROUND_ROBIN,
    Fleet,
    at,
    call,
    group_of,
    name_of,
    out,
    state_of,
    url_of,
)
from chains import SAFELY, after, now, pass_on, refused, retrying

from aioretry_smithy import (
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


@pytest.fixture(autouse=True)
def _no_chance(monkeypatch):
    """Let endpoints be out for the shortest time, unless a test says otherwise."""
    monkeypatch.setattr("aioretry_smithy._endpoints.ejection.chance", lambda: 0.0)


class Heard(EndpointGroupListener):
    """Notes who is out, why and until when, and who is back."""

    def __init__(self):
        self.events = []

    def on_ejected(self, group, endpoint, reason, until):
        assert group.name
        self.events.append((now(), name_of(endpoint), reason, until))

    def on_returned(self, group, endpoint):
        self.events.append((now(), name_of(endpoint)))


async def outcomes(fleet, group, number, *decorators):
    """Make calls one after another, and return who is out then."""
    async with fleet.session(group, *decorators) as client:
        for _ in range(number):
            await call(client)
        return out(group)


class TestConsecutive:
    """Failures in a row."""

    @pytest.mark.parametrize(
        ("number", "expected"), [(4, {}), (5, {"a": "consecutive_failures"})]
    )
    async def test_five_are_too_many(self, number, expected):
        """Case 76: not four."""
        assert expected == await outcomes(Fleet(a=503), group_of("ab"), number)

    async def test_success_ends_the_row(self):
        """Case 78: four failures and a success, again and again."""
        fleet = Fleet(a=[*[503, 503, 503, 503, 200] * 4])
        group = group_of(
            "ab", outlier_detection=OutlierDetection(failure_rate_threshold=1.0)
        )

        assert {} == await outcomes(fleet, group, 20)

    @pytest.mark.parametrize(
        "failure", [500, 501, 599, aiohttp.ServerDisconnectedError()]
    )
    async def test_statuses_of_5xx_and_exceptions_are_failures(self, failure):
        """Case 76: of any kind."""
        detection = OutlierDetection(consecutive_failures=1)

        assert {"a": "consecutive_failures"} == await outcomes(
            Fleet(a=failure), group_of("ab", outlier_detection=detection), 1
        )

    @pytest.mark.parametrize(
        "answer", [200, 304, 400, 404, 408, 429, (429, {"Retry-After": "1"}, b"")]
    )
    async def test_others_are_none(self, answer):
        """Case 80: 4xx and 429 never eject."""
        detection = OutlierDetection(consecutive_failures=1)
        group = group_of("ab", outlier_detection=detection)

        assert {} == await outcomes(Fleet(a=answer), group, 20)

    async def test_number_is_the_users(self):
        """Case 76: of consecutive_failures."""
        detection = OutlierDetection(consecutive_failures=2)
        fleet = Fleet(a=503)
        await outcomes(fleet, group_of("ab", outlier_detection=detection), 4)

        assert "aabb" == fleet.text


class TestConnect:
    """Connections that are refused."""

    async def test_one_is_too_many(self):
        """Case 77: it was certainly not sent, and it would be so again."""
        assert {"a": "connect_failures"} == await outcomes(
            Fleet(a=refused()), group_of("ab"), 1
        )

    async def test_number_is_the_users(self):
        """Case 77: in a row, of connect_failures."""
        detection = OutlierDetection(connect_failures=2)
        fleet = Fleet(a=[refused(), 200, refused(), refused()])
        await outcomes(fleet, group_of("ab", outlier_detection=detection), 5)

        assert "aaaab" == fleet.text

    async def test_without_detection_none_is_out(self):
        """Case 91: outlier_detection=None."""
        fleet = Fleet(a=[200, refused()])

        assert {} == await outcomes(fleet, group_of("ab", outlier_detection=None), 20)
        assert {"a"} == set(fleet.asked)


class TestRate:
    """The share of failures in a window."""

    async def test_more_than_half_of_ten(self):
        """Case 79: not nine, and not half."""
        fleet = Fleet(a=[503, 200, 503, 503, 200, 503, 200, 200, 503, 503])
        group = group_of("ab")
        async with fleet.session(group) as client:
            found = []
            for _ in range(10):
                await call(client)
                found.append(out(group))

        assert [{}] * 9 + [{"a": "failure_rate"}] == found

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

    async def test_settings_are_the_users(self):
        """Case 79: threshold and number."""
        detection = OutlierDetection(
            minimum_request_threshold=4, failure_rate_threshold=0.2
        )
        fleet = Fleet(a=[200, 200, 200, 503])

        assert {"a": "failure_rate"} == await outcomes(
            fleet, group_of("ab", outlier_detection=detection), 4
        )

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


class TestHowLong:
    """The time that an endpoint is out."""

    @pytest.mark.parametrize(("dice", "until"), [(0.0, 5.0), (0.5, 5.625), (1.0, 6.25)])
    async def test_five_seconds_and_up_to_a_quarter(self, monkeypatch, dice, until):
        """Case 82: by chance, so that not all come back at once."""
        monkeypatch.setattr("aioretry_smithy._endpoints.ejection.chance", lambda: dice)
        group = group_of("ab")
        await outcomes(Fleet(a=refused()), group, 1)

        assert until == state_of(group, "a").ejected_until

    async def test_each_failed_trial_doubles_it(self):
        """Case 84: up to 60 s; the listener hears each time."""
        heard = Heard()
        fleet = Fleet(a=[*[refused()] * 6, 200])
        group = group_of("ab", listener=heard)
        async with fleet.session(group, retrying(SAFELY)) as client:
            for moment in (0, 5, 15, 35, 75, 135, 195, 196):
                await at(moment)
                assert 200 == (await call(client))[0]

        assert [
            (0.0, "a", "connect_failures", 5.0),
            (5.0, "a", "trial_failed", 15.0),
            (15.0, "a", "trial_failed", 35.0),
            (35.0, "a", "trial_failed", 75.0),
            (75.0, "a", "trial_failed", 135.0),
            (135.0, "a", "trial_failed", 195.0),
            (195.0, "a"),
        ] == heard.events

    async def test_begins_anew_after_a_return(self):
        """Case 83: it was well in between."""
        heard = Heard()
        fleet = Fleet(a=[refused(), refused(), 200, refused()])
        group = group_of("ab", listener=heard)
        async with fleet.session(group, retrying(SAFELY)) as client:
            for moment in (0, 5, 15, 16):
                await at(moment)
                await call(client)

        assert (16.0, "a", "connect_failures", 21.0) == heard.events[-1]

    async def test_dead_one_gets_few_requests(self):
        """Case 93: 0.5 a second at most, here far fewer."""
        fleet = Fleet(a=refused())
        group = group_of("abc", selection=ROUND_ROBIN)
        async with fleet.session(group, retrying(SAFELY)) as client:
            for _ in range(600):
                assert 200 == (await call(client))[0]
                await asyncio.sleep(0.1)

        assert fleet.text.count("a") <= 5


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

    async def test_none_may_be_out_where_that_is_said(self):
        """max_ejected=0.0."""
        group = group_of("abcd", outlier_detection=OutlierDetection(max_ejected=0.0))

        assert {} == await outcomes(Fleet(a=refused()), group, 20)


class TestOldAnswers:
    """Requests that began before the ejection, or the return."""

    async def test_success_does_not_bring_it_back(self):
        """Case 90: it says how it was."""
        fleet = Fleet(a=[after(3.0, 200), refused()])
        group = group_of("ab")
        async with fleet.session(group) as client:
            old = asyncio.create_task(call(client))
            await asyncio.sleep(1.0)
            await call(client)
            assert 200 == (await old)[0]

        assert {"a": "connect_failures"} == out(group)

    async def test_success_does_not_end_a_row(self):
        """Case 90: of failures after the return."""
        late = after(7.0, 200)
        fleet = Fleet(a=[late, refused(), 200, 503, 503, 503, 503, 503])
        group = group_of("ab")
        async with fleet.session(group) as client:
            old = asyncio.create_task(call(client))
            await at(0.5)
            await call(client)
            await at(6.0)
            for _ in range(5):
                await call(client)
            await old
            await call(client)

        assert ("aaaaaaaa", {"a": "consecutive_failures"}) == (fleet.text, out(group))

    async def test_failures_do_not_keep_it_out_for_longer(self):
        """Case 90: nor put it out again once it is back."""
        heard = Heard()
        fleet = Fleet(a=[*[after(7.0, 503)] * 5, after(3.0, refused()), 200])
        group = group_of("ab", listener=heard)
        async with fleet.session(group) as client:
            old = [asyncio.create_task(call(client)) for _ in range(6)]
            await at(8.5)
            assert {"a": "connect_failures"} == out(group)
            await call(client)
            await asyncio.gather(*old)

        assert [(3.0, "a", "connect_failures", 8.0), (8.5, "a")] == heard.events

    async def test_failures_from_before_the_return_are_not_counted(self):
        """Case 90: they began while it was out."""
        fleet = Fleet(a=[refused(), *[after(6.0, 503)] * 5, 200])
        group = DynamicEndpointGroup(map(url_of, "ab"), selection=IN_ORDER)
        async with fleet.session(group) as client:
            await call(client)
            # With nothing else, one that is out is used.
            group.set_endpoints(map(url_of, "a"))
            old = [asyncio.create_task(call(client)) for _ in range(5)]
            await at(5.5)
            before = out(group)
            group.set_endpoints(map(url_of, "ab"))
            await call(client)
            await asyncio.gather(*old)

        assert ("aaaaaaa", {"a": "connect_failures"}) == (fleet.text, before)
        assert ({}, 0) == (out(group), state_of(group, "a").failures)

    async def test_late_retry_after_cuts_no_ejection_short(self):
        """Case 90: a second of rest is no cure."""
        fleet = Fleet(a=[after(2.0, (503, {"Retry-After": "4"}, b"")), refused()])
        group = group_of("ab")
        async with fleet.session(group) as client:
            old = asyncio.create_task(call(client))
            await asyncio.sleep(1.0)
            await call(client)
            await old
            assert {"a": "connect_failures"} == out(group)
            await at(6.5)
            await call(client)

        assert "aaa" == fleet.text

    async def test_broken_connections_of_one_restart_are_one_failure(self):
        """Ten requests that are cut at once do not eject."""
        fleet = Fleet(a=after(1.0, aiohttp.ServerDisconnectedError()))
        group = group_of("ab")
        async with fleet.session(group) as client:
            await asyncio.gather(*(call(client) for _ in range(10)))
            once = out(group)
            for _ in range(4):
                await call(client)

        assert ({}, {"a": "consecutive_failures"}) == (once, out(group))


class TestSetAside:
    """Servers that ask to be left alone."""

    RESTING = (503, {"Retry-After": "7"}, b"")

    async def test_is_out_for_so_long(self):
        """Case 66: without jitter and trial; the listener hears."""
        heard = Heard()
        fleet = Fleet(a=[self.RESTING, 200])
        group = group_of("abc", listener=heard)
        async with fleet.session(group) as client:
            for moment in (0.0, 6.9, 7.0):
                await at(moment)
                await call(client)
            await asyncio.gather(*(call(client) for _ in range(3)))

        assert "abaaaa" == fleet.text
        assert [(0.0, "a", "retry_after", 7.0), (7.0, "a")] == heard.events

    async def test_for_a_minute_at_most(self):
        """Case 66: max_ejection_time."""
        group = group_of("ab")
        await outcomes(Fleet(a=(503, {"Retry-After": "3600"}, b"")), group, 1)

        assert 60.0 == state_of(group, "a").ejected_until

    async def test_within_the_floor(self):
        """Case 66: what may not be out is a failure as any."""
        fleet = Fleet(**dict.fromkeys("ab", self.RESTING))
        group = group_of("ab")

        assert {"a": "retry_after"} == await outcomes(fleet, group, 9)
        assert 8 == state_of(group, "b").failures

    async def test_second_hint_makes_it_longer_but_not_shorter(self):
        """It is said again for each answer that asks for more."""
        answers = [
            after(s, (503, {"Retry-After": wait}, b""))
            for s, wait in ((0.0, "9"), (1.0, "3"))
        ]
        fleet = Fleet(a=answers)
        group = group_of("ab")
        async with fleet.session(group) as client:
            await asyncio.gather(call(client), call(client))

        assert 9.0 == state_of(group, "a").ejected_until

    @pytest.mark.parametrize(
        "answer",
        [
            (429, {"Retry-After": "7"}, b""),
            (500, {"Retry-After": "7"}, b""),
            (503, {"Retry-After": "x"}, b""),
            (503, {"Retry-After": "0"}, b""),
        ],
    )
    async def test_only_by_a_503_that_says_how_long(self, answer):
        """Case 67: 429 is the service's."""
        group = group_of("ab")

        assert {} == await outcomes(Fleet(a=answer), group, 1)

    async def test_not_without_detection(self):
        """outlier_detection=None."""
        fleet = Fleet(a=self.RESTING)

        assert {} == await outcomes(fleet, group_of("ab", outlier_detection=None), 1)

    async def test_also_where_that_is_no_failure(self):
        """Throttling that is not counted is obeyed all the same."""
        detection = OutlierDetection(
            strategy=CircuitBreakerStrategy.on_server_error_status(
                count_throttling=False
            )
        )
        group = group_of("ab", outlier_detection=detection)

        assert {"a": "retry_after"} == await outcomes(Fleet(a=self.RESTING), group, 1)

    async def test_not_by_what_answers_in_place_of_a_server(self):
        """Something on this side."""

        @client_decorator
        async def answer(delegate, ctx, request):
            return (await delegate.execute(ctx, request)) if False else made

        fleet = Fleet()
        group = group_of("ab")
        async with Fleet(x=self.RESTING).session(group_of("x")) as other:
            made = await other.get("/")
        async with fleet.session(group, answer) as client:
            status, _ = await call(client)

        assert (503, {}) == (status, out(group))
        assert state_of(group, "a").latency is None


class TestLeft:
    """Endpoints that leave the list."""

    @pytest.mark.parametrize(
        ("away", "expected"), [(299.0, {"a": "connect_failures"}), (301.0, {})]
    )
    async def test_state_is_kept_for_five_minutes(self, away, expected):
        """Case 89: addresses are given to others after a while."""
        fleet = Fleet(a=refused())
        detection = OutlierDetection(ejection_time=1000.0, max_ejection_time=1000.0)
        group = DynamicEndpointGroup(
            map(url_of, "ab"), selection=IN_ORDER, outlier_detection=detection
        )
        async with fleet.session(group) as client:
            await call(client)
            group.set_endpoints(map(url_of, "b"))
            gone = out(group)
            await asyncio.sleep(away)
            group.set_endpoints(map(url_of, "ab"))

        assert ({}, expected) == (gone, out(group))

    async def test_failures_of_one_that_has_left_are_heard(self):
        """What is under way there ends."""
        fleet = Fleet(a=after(1.0, refused()))
        group = DynamicEndpointGroup(map(url_of, "ab"), selection=IN_ORDER)
        async with fleet.session(group) as client:
            task = asyncio.create_task(call(client))
            await asyncio.sleep(0.5)
            group.set_endpoints(map(url_of, "bc"))
            await task
            group.set_endpoints(map(url_of, "abc"))

        assert {"a": "connect_failures"} == out(group)


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
    @pytest.mark.parametrize(
        ("verdict", "expected"),
        [(False, {"a": "consecutive_failures"}), (True, {}), (None, {})],
    )
    async def test_its_verdict_counts(self, kind, verdict, expected):
        """Case 76: plain or async; it is asked with the endpoint."""
        group = judged(verdict, kind)

        assert expected == await outcomes(Fleet(), group, 1)
        strategy = group._settings.outlier_detection.strategy
        assert "a" == name_of(strategy.endpoint)
        assert 0 == state_of(group, "a").in_flight

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
    @pytest.mark.parametrize(
        "error", [ZeroDivisionError(), TimeoutError("mine"), refused()]
    )
    async def test_what_it_raises_goes_to_the_caller(self, kind, error):
        """Never retried, shown in the log, nobody's failure, nothing leaks."""
        fleet = Fleet()
        group = judged(error, kind)
        async with fleet.session(group, retrying(SAFELY)) as client:
            raised, log = await call(client)

        assert error is raised
        assert ("a", 1) == (fleet.text, log.total_attempts)
        assert repr(error) == repr(log.children[0].response_cause)
        assert ({}, 0) == (out(group), state_of(group, "a").in_flight)

    @pytest.mark.parametrize("kind", [Judge, AsyncJudge])
    async def test_what_it_raises_of_a_trial_is_no_information(self, kind):
        """The next request is the trial."""
        group = judged(False, kind)
        fleet = Fleet()
        strategy = group._settings.outlier_detection.strategy
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
            strategy = group._settings.outlier_detection.strategy
            strategy.verdict = True
            await call(client)

        assert ("aaa", {}) == (fleet.text, out(group))
        assert 0 == state_of(group, "a").in_flight


async def test_errors_of_listeners_are_logged(caplog):
    """Case 92: they hear, and break nothing."""

    class Broken(EndpointGroupListener):
        def on_ejected(self, group, endpoint, reason, until):
            raise ZeroDivisionError

        def on_returned(self, group, endpoint):
            raise ZeroDivisionError

    fleet = Fleet(a=[refused(), 200])
    group = group_of("ab", listener=Broken())
    with caplog.at_level(logging.WARNING, "aioretry_smithy"):
        async with fleet.session(group, retrying(SAFELY)) as client:
            for moment in (0.0, 5.0):
                await at(moment)
                assert 200 == (await call(client))[0]

    assert 2 == len(caplog.records)
    assert "endpoint group" in caplog.text
    assert {} == out(group)


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
