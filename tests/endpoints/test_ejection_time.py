"""How long endpoints are left alone, and what ends it."""

import asyncio
from email.utils import formatdate

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
    outcomes,
    state_of,
    url_of,
)
from chains import SAFELY, after, now, refused, retrying

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    DynamicEndpointGroup,
    EndpointGroupListener,
    OutlierDetection,
    client_decorator,
)

pytestmark = pytest.mark.usefixtures("shortest_ejections")


class Heard(EndpointGroupListener):
    """Notes who is out, why and until when, and who is back."""

    def __init__(self):
        self.events = []

    def on_ejected(self, group, endpoint, reason, until):
        assert group.name
        self.events.append((now(), name_of(endpoint), reason, until))

    def on_returned(self, group, endpoint):
        self.events.append((now(), name_of(endpoint)))


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

    async def test_until_a_date_however_long_the_answer_took(self):
        """A date without the server's ``Date`` counts from when the answer came."""
        until = asyncio.get_running_loop().began_at + 12.0
        date = formatdate(until + 1.0, usegmt=True)
        fleet = Fleet(a=after(5.0, (503, {"Retry-After": date}, b"")))
        group = group_of("ab")
        await outcomes(fleet, group, 1)

        assert 12.0 <= state_of(group, "a").ejected_until <= 13.0

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


OPENS = {"consecutive_failures": 1, "circuit_open_window": 2.0}


def waiting():
    return CircuitBreakerClient.new_per_host_decorator(
        lambda key: CircuitBreaker(key, **OPENS), wait_for_ready=5.0
    )


async def test_another_endpoint_is_asked_at_once():
    """Nobody waits for one server while others are well."""
    fleet = Fleet(a=[503, 200], b=[200, 200, 200])
    group = group_of("ab", outlier_detection=None)
    async with fleet.session(group, waiting(), retrying(SAFELY)) as client:
        results = [await call(client) for _ in range(3)]

    assert [200] * 3 == [status for status, _ in results]
    assert (0.0, 1) == (now(), fleet.text.count("a"))


async def test_the_last_one_is_waited_for():
    """Where there is no other."""
    fleet = Fleet(a=[503, 200])
    group = group_of("a", outlier_detection=None)
    async with fleet.session(group, waiting(), retrying(SAFELY)) as client:
        result = await call(client)

    assert (200, "aa") == (result[0], fleet.text)
    assert 2.0 == now()
