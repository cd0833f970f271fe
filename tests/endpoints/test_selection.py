"""The choice of an endpoint for each request.

Of the cases of endpoints.md (f): 43 to 58.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import random
from collections import Counter

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
from chains import SAFELY, after, refused, retrying

from aioretry_smithy import (
    DynamicEndpointGroup,
    Endpoint,
    EndpointGroup,
    EndpointSelectionStrategy,
)
from aioretry_smithy._endpoints.selection import _BuiltIn, shuffled_start

PEAK_EWMA = EndpointSelectionStrategy.peak_ewma()
LEAST = EndpointSelectionStrategy.least_requests()


@pytest.fixture
def dice(monkeypatch):
    """Draw what is told, again and again, in place of chance."""

    def draw(*numbers):
        drawn = iter(numbers * 10_000)
        monkeypatch.setattr(
            "aioretry_smithy._endpoints.selection.chance", lambda: next(drawn)
        )

    return draw


@pytest.fixture
def seeded(monkeypatch):
    """Draw the same numbers in each run."""
    for module in ("selection", "roster", "ejection"):
        monkeypatch.setattr(
            f"aioretry_smithy._endpoints.{module}.chance", random.Random(7).random
        )


async def asked(fleet, group, number, *decorators):
    """Make calls one after another, and return who was asked."""
    async with fleet.session(group, *decorators) as client:
        for _ in range(number):
            await call(client)
    return fleet.text


class TestRoundRobin:
    """Turns."""

    @pytest.mark.parametrize(
        ("drawn", "order"), [(0.0, "abcab"), (0.5, "bcabc"), (0.99, "cabca")]
    )
    async def test_visits_all_in_order_from_a_random_start(
        self, monkeypatch, drawn, order
    ):
        """Case 43: processes that start together do not begin with the same one."""
        monkeypatch.setattr("aioretry_smithy._endpoints.roster.chance", lambda: drawn)

        assert order == await asked(Fleet(), group_of(selection=ROUND_ROBIN), 5)

    async def test_an_attempt_selects_once(self):
        """Case 44: five calls visit five endpoints."""
        text = await asked(
            Fleet(), group_of("abcde", selection=ROUND_ROBIN), 5, retrying(0.0)
        )

        assert "abcde" == "".join(sorted(text))

    async def test_retries_take_their_turns(self):
        """Case 45: each call retried once, the list is walked twice."""
        fleet = Fleet()
        failing = iter([503, 200] * 9)
        fleet.answers = {name: lambda *_: next(failing) for name in "abcde"}
        group = group_of("abcde", selection=ROUND_ROBIN, outlier_detection=None)

        text = await asked(fleet, group, 5, retrying(0.0))

        assert text[:5] * 2 == text
        assert "abcde" == "".join(sorted(text[:5]))

    async def test_weights_are_obeyed(self):
        """Case 46: 1 : 2 : 3 over 600."""
        group = EndpointGroup.of(
            *(
                Endpoint(url_of(name), weight=weight)
                for weight, name in enumerate("abc", 1)
            ),
            selection=ROUND_ROBIN,
        )

        text = await asked(Fleet(), group, 600)

        assert {"a": 100, "b": 200, "c": 300} == Counter(text)
        # Not one after another: each part of the whole is shared out so.
        assert {"a": 10, "b": 20, "c": 30} == Counter(text[:60])

    async def test_one_that_was_out_does_not_make_up_for_it(self):
        """It has missed its turns, but for less than one."""
        fleet = Fleet(a=[refused(), 200])
        group = group_of("ab", selection=ROUND_ROBIN)
        async with fleet.session(group) as client:
            while not out(group):
                await call(client)
            for _ in range(40):
                await call(client)
            await at(8.0)
            fleet.asked.clear()
            for _ in range(10):
                await call(client)

        assert {"a": 3, "b": 3} == Counter(fleet.text[-6:])

    async def test_new_one_begins_where_the_others_are(self):
        """It does not get all requests until it has had as many."""
        fleet = Fleet()
        group = DynamicEndpointGroup(map(url_of, "ab"), selection=ROUND_ROBIN)
        async with fleet.session(group) as client:
            for _ in range(40):
                await call(client)
            group.set_endpoints(map(url_of, "abc"))
            fleet.asked.clear()
            for _ in range(9):
                await call(client)

        assert {"a": 3, "b": 3, "c": 3} == Counter(fleet.text)

    def test_start_goes_by_weight(self):
        """Where a turn is long, so is what is drawn."""

        class State:
            turn = 0.0

            def __init__(self, weight):
                self.weight = weight

        states = [State(1.0), State(2.0), State(0.5), State(1.0)]
        shuffled_start(states, lambda: 0.3, 10.0)

        assert [10.75, 10.0, 10.5, 10.5] == [each.turn for each in states]

    def test_no_start_of_none(self):
        """An empty list draws, and divides by nothing."""
        shuffled_start([], lambda: 0.5, 0.0)


class TestLeastRequests:
    """The less busy one of two."""

    async def test_never_picks_the_busier_of_its_two(self, dice):
        """Case 47: of each pair that is drawn."""
        group = group_of("abcd", selection=LEAST)
        fleet = Fleet()
        async with fleet.session(group) as client:
            await call(client)
            for name, busy in zip("abcd", (3, 2, 1, 0), strict=True):
                state_of(group, name).in_flight = busy
            for first, second, expected in [
                (0.0, 0.0, "b"),
                (0.0, 0.99, "d"),
                (0.3, 0.4, "c"),
                (0.6, 0.5, "c"),
                (0.99, 0.0, "d"),
            ]:
                dice(first, second)
                fleet.asked.clear()
                await call(client)

                assert expected == fleet.text

    @pytest.mark.usefixtures("seeded")
    async def test_of_two_takes_the_idler_one(self):
        """Case 48: both are drawn, in any order."""
        group = group_of("ab", selection=LEAST)
        fleet = Fleet(a=after(100.0, 200))
        async with fleet.session(group) as client:
            first = asyncio.create_task(call(client))
            while not fleet.text.endswith("a"):
                await asyncio.sleep(0)
                if first.done():
                    first = asyncio.create_task(call(client))
            fleet.asked.clear()
            for _ in range(20):
                await call(client)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)

        assert {"b"} == set(fleet.asked)

    @pytest.mark.parametrize(("busy", "expected"), [(0, "h"), (1, "h"), (4, "a")])
    async def test_weight_makes_room(self, busy, expected):
        """Four times the share may have four times as many under way."""
        group = EndpointGroup.of(
            "http://a.example", Endpoint("http://h.example", weight=4), selection=LEAST
        )
        fleet = Fleet()
        async with fleet.session(group) as client:
            await call(client)
            state_of(group, "h").in_flight = busy
            fleet.asked.clear()
            await call(client)

        assert expected == fleet.text

    @pytest.mark.usefixtures("seeded")
    async def test_ties_are_random(self):
        """Case 53: with nothing under way, all get their share."""
        counted = Counter(await asked(Fleet(), group_of("abc", selection=LEAST), 300))

        assert min(counted.values()) >= 80


class TestPeakEwma:
    """The quicker one of two, as far as it is idle."""

    @pytest.mark.usefixtures("seeded")
    async def test_each_gets_a_first_request(self):
        """Case 52: before any gets a second one, and one at a time."""
        fleet = Fleet()

        text = await asked(fleet, group_of("abcde", selection=PEAK_EWMA), 5)

        assert "abcde" == "".join(sorted(text))

    @pytest.mark.usefixtures("seeded")
    async def test_first_request_is_one_at_a_time(self):
        """Case 52: while it is under way, more go by the slowest latency known."""
        fleet = Fleet(a=after(0.01, 200), b=after(0.01, 200), c=after(1.0, 200))
        group = group_of("abc", selection=PEAK_EWMA)
        async with fleet.session(group) as client:
            await asyncio.gather(*(call(client) for _ in range(3)))
            # A fourth endpoint without history would get one; this one has one.
            state_of(group, "c").grown = state_of(group, "c").heat = 0.0
            tasks = [asyncio.create_task(call(client)) for _ in range(2)]
            await asyncio.sleep(0)
            in_flight = state_of(group, "c").in_flight
            await asyncio.gather(*tasks)

        assert 1 == in_flight

    @pytest.mark.usefixtures("seeded")
    async def test_slow_one_is_left_alone(self):
        """Case 49: ten times slower, it gets 1.5 % or less."""
        fleet = Fleet(a=after(0.01, 200), b=after(0.01, 200), c=after(0.1, 200))
        group = group_of("abc", selection=PEAK_EWMA)
        async with fleet.session(group) as client:
            tasks = []
            for _ in range(2000):
                tasks.append(asyncio.create_task(call(client)))
                await asyncio.sleep(0.005)
            await asyncio.gather(*tasks)

        assert fleet.text.count("c") / 2000 <= 0.015

    @pytest.mark.usefixtures("seeded")
    async def test_slow_one_returns_once_that_has_decayed(self):
        """Case 50: the estimate falls while nobody asks, so that it is asked again."""
        slow = [0.1]

        async def respond(ctx, request):
            await asyncio.sleep(slow[0])
            return 200

        fleet = Fleet(a=after(0.01, 200), b=respond)
        group = group_of("ab", selection=EndpointSelectionStrategy.peak_ewma(2.0))
        async with fleet.session(group) as client:
            for _ in range(20):
                await call(client)
            slow[0] = 0.01
            fleet.asked.clear()
            for _ in range(400):
                await call(client)
                await asyncio.sleep(0.05)
            after_decay = fleet.text

        assert "b" not in after_decay[:20]
        assert after_decay[-100:].count("b") >= 20

    async def test_failure_costs_the_penalty_until_the_next_success(self):
        """Case 51: a fast failure does not attract; with no ejection at all."""
        fleet = Fleet(a=[200, 503, 200])
        group = group_of("ab", selection=PEAK_EWMA, outlier_detection=None)
        async with fleet.session(group) as client:
            for _ in range(30):
                await call(client)
                if state_of(group, "a").penalty:
                    break
            failed = state_of(group, "a").latency
            fleet.asked.clear()
            for _ in range(30):
                await call(client)
            meanwhile = fleet.text
            await asyncio.sleep(1.0)
            fleet.asked.clear()
            await call(client)
            chance = fleet.text

        assert (1.0, {"b"}, "a") == (failed, {*meanwhile}, chance)
        assert 0.0 == state_of(group, "a").latency

    async def test_one_chance_a_penalty(self):
        """After each further failure the same time passes."""
        fleet = Fleet(a=503, b=after(0.01, 200))
        group = group_of(
            "ab",
            selection=EndpointSelectionStrategy.peak_ewma(failure_penalty=2.0),
            outlier_detection=None,
        )
        async with fleet.session(group) as client:
            for _ in range(100):
                await call(client)
                await asyncio.sleep(0.1)

        times = [moment for moment, name in fleet.times if name == "a"]
        assert 5 <= len(times) <= 6
        assert min(later - one for one, later in itertools.pairwise(times)) >= 2.0

    async def test_two_that_failed_get_their_chances_in_turn(self):
        """One that is being tried is not tried by the next call too."""
        fleet = Fleet(a=503, b=503, c=after(0.01, 200))
        group = group_of("abc", selection=PEAK_EWMA, outlier_detection=None)
        async with fleet.session(group) as client:
            for _ in range(3):
                await call(client)
            await asyncio.sleep(2.0)
            fleet.asked.clear()
            await asyncio.gather(*(call(client) for _ in range(5)))

        assert "ab" == fleet.text[:2]

    async def test_no_penalty_no_chance(self):
        """With 0 a failure costs what it took."""
        strategy = EndpointSelectionStrategy.peak_ewma(failure_penalty=0.0)
        fleet = Fleet(a=503)
        group = group_of("a", selection=strategy, outlier_detection=None)
        async with fleet.session(group) as client:
            await call(client)

        assert (None, 0.0) == (
            state_of(group, "a").latency,
            state_of(group, "a").penalty,
        )

    @pytest.mark.parametrize(
        ("drawn", "expected"),
        [((0.0, 0.0), "a"), ((0.99, 0.0), "a"), ((0.5, 0.99), "b")],
    )
    async def test_lower_cost_of_the_two_that_are_drawn(self, dice, drawn, expected):
        """Latency x (in flight + 1) / weight."""
        group = EndpointGroup.of(
            Endpoint("http://a.example", weight=2.0),
            "http://b.example",
            "http://c.example",
            selection=PEAK_EWMA,
        )
        fleet = Fleet(
            **{n: after(s, 200) for n, s in (("a", 0.03), ("b", 0.02), ("c", 0.04))}
        )
        async with fleet.session(group) as client:
            for _ in range(3):
                await call(client)
            fleet.asked.clear()
            dice(*drawn)
            await call(client)

        assert expected == fleet.text

    async def test_requests_under_way_count(self, dice):
        """Twice as quick, but with two under way, is no better."""
        group = group_of("ab", selection=PEAK_EWMA)
        fleet = Fleet(a=after(0.01, 200), b=after(0.02, 200))
        async with fleet.session(group) as client:
            for _ in range(2):
                await call(client)
            fleet.asked.clear()
            dice(0.0)
            state_of(group, "a").in_flight = 2
            await call(client)

        assert "b" == fleet.text

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("decay", (0,)),
            ("decay", (math.nan,)),
            ("failure_penalty", (10.0, -1)),
        ],
    )
    def test_bad_settings_are_refused(self, name, arguments):
        """Each with its name."""
        with pytest.raises(ValueError, match=f"^{name}: "):
            EndpointSelectionStrategy.peak_ewma(*arguments)


class TestSticky:
    """The same endpoint for the same key."""

    @staticmethod
    def strategy():
        return EndpointSelectionStrategy.sticky(lambda ctx: ctx.request.headers["Key"])

    @staticmethod
    async def places(client, keys=range(60)):
        """Return where each key goes."""
        found = {}
        for key in keys:
            _, log = await call(client, headers={"Key": str(key)})
            found[key] = log.endpoint
        return found

    async def test_same_key_goes_to_the_same_endpoint(self):
        """Case 54: in any process; a lost endpoint moves only its own keys."""
        group = DynamicEndpointGroup(map(url_of, "abc"), selection=self.strategy())
        async with Fleet().session(group) as client:
            before = await self.places(client)
            again = await self.places(client)
            group.set_endpoints(map(url_of, "ca"))
            lost = await self.places(client)

        assert before == again
        assert {"a.example", "b.example", "c.example"} == set(before.values())
        moved = {key for key in before if before[key] != lost[key]}
        assert {key for key in before if before[key] == "b.example"} == moved
        # As another process finds them.
        assert ["b", "b", "a", "a", "b"] == [before[key][0] for key in range(5)]

    async def test_weights_are_obeyed(self):
        """Twice the share, twice the keys."""
        group = EndpointGroup.of(
            "http://a.example",
            Endpoint("http://b.example", weight=2),
            selection=self.strategy(),
        )
        async with Fleet().session(group) as client:
            found = Counter((await self.places(client, range(300))).values())

        assert 180 <= found["b.example"] <= 220

    async def test_addresses_tell_endpoints_apart(self):
        """They share a URL."""
        group = EndpointGroup.of(
            *(Endpoint("http://a.example", address=f"10.0.0.{n}") for n in (1, 2)),
            selection=self.strategy(),
        )
        async with Fleet().session(group) as client:
            found = Counter((await self.places(client)).values())

        assert 2 == len(found)

    async def test_key_that_cannot_be_encoded_is_one(self):
        """Any str will do."""
        group = group_of(
            selection=EndpointSelectionStrategy.sticky(lambda ctx: "\udcff")
        )
        text = await asked(Fleet(), group, 3)

        assert 1 == len({*text})

    @pytest.mark.parametrize(
        "error", [KeyError("Key"), TimeoutError("mine"), refused()]
    )
    @pytest.mark.parametrize("strategy", [SAFELY, 0.0])
    async def test_key_function_that_raises(self, error, strategy):
        """Case 55: to the caller, nothing sent, never retried, nobody's failure."""

        def key(ctx):
            raise error

        fleet = Fleet()
        group = group_of(selection=EndpointSelectionStrategy.sticky(key))
        async with fleet.session(group, retrying(strategy)) as client:
            raised, log = await call(client)

        assert error is raised
        assert ([], 1, False, None) == (
            fleet.asked,
            log.total_attempts,
            log.sent,
            log.endpoint,
        )
        assert {} == out(group)
        assert {0} == {each.in_flight for each in group.states.values()}

    async def test_key_function_that_raises_at_a_trial(self):
        """Case 55: it is asked whose key that is."""
        broken = []

        def key(ctx):
            if broken:
                raise ZeroDivisionError
            return "key"

        fleet = Fleet(a=refused(), b=refused())
        group = group_of("ab", selection=EndpointSelectionStrategy.sticky(key))
        async with fleet.session(group, retrying(SAFELY)) as client:
            await call(client)
            broken.append(True)
            await at(10.0)
            raised, log = await call(client)

        assert (ZeroDivisionError, 1) == (type(raised), log.total_attempts)

    @pytest.mark.parametrize("key", ["tenant", None, 7])
    def test_key_is_a_plain_function(self, key):
        """A name of a header is none."""
        with pytest.raises(ValueError, match="^key: .*a plain function"):
            EndpointSelectionStrategy.sticky(key)

    async def test_async_key_is_refused(self):
        """At once, not at the first call."""

        async def key(ctx):
            return "key"

        with pytest.raises(ValueError, match="^key: .*a plain function"):
            EndpointSelectionStrategy.sticky(key)

    @pytest.mark.parametrize("value", [None, 7, b"key"])
    async def test_key_that_is_no_str_is_refused(self, value):
        """Case 58: with what it was."""
        fleet = Fleet()
        group = group_of(selection=EndpointSelectionStrategy.sticky(lambda ctx: value))
        async with fleet.session(group, retrying(SAFELY)) as client:
            raised, _ = await call(client)

        assert isinstance(raised, ValueError)
        assert str(raised).startswith("key(ctx): ")
        assert [] == fleet.asked

    async def test_trial_is_of_the_keys_own_endpoint(self):
        """Case 82: under sticky only a request whose key chooses it tries it."""
        strategy = self.strategy()
        fleet = Fleet(b=[refused(), 200])
        group = group_of("abc", selection=strategy)
        async with fleet.session(group) as client:
            # Key 0 goes to b, keys 2 and 3 to a.
            await self.places(client, [0])
            await at(7.0)
            others = await self.places(client, [2, 3])
            own = await self.places(client, [0])

        assert {2: "a.example", 3: "a.example"} == others
        assert {0: "b.example"} == own

    def test_is_shown_by_its_function(self):
        """As others are."""

        def tenant(ctx):
            return ""

        shown = repr(EndpointSelectionStrategy.sticky(tenant))
        assert shown.startswith("EndpointSelectionStrategy.sticky(")
        assert "tenant" in shown


class TestInOrder:
    """The first that is well."""

    async def test_second_serves_only_while_the_first_is_out(self):
        """Case 56: and it goes back."""
        fleet = Fleet(a=[refused(), 200])
        group = group_of("ab")
        async with fleet.session(group, retrying(SAFELY)) as client:
            for moment in (0.0, 1.0, 4.9, 6.5, 7.0, 8.0):
                await at(moment)
                await call(client)

        assert "abbbaaa" == fleet.text

    async def test_order_is_that_of_the_list(self):
        """Not that in which endpoints came."""
        fleet = Fleet()
        group = DynamicEndpointGroup(map(url_of, "bc"), selection=IN_ORDER)
        async with fleet.session(group) as client:
            await call(client)
            group.set_endpoints(map(url_of, "abc"))
            await call(client)
            group.set_endpoints(map(url_of, "cba"))
            await call(client)

        assert "bac" == fleet.text


class Own(EndpointSelectionStrategy):
    """A strategy of a user's own, without a word to its base."""

    def __init__(self, choose):
        self.choose = choose
        self.asked = []

    def select(self, ctx, candidates):
        self.asked.append(
            (ctx.attempt, [name_of(each.endpoint) for each in candidates])
        )
        return self.choose(candidates)


class TestOwn:
    """Strategies of users' own."""

    async def test_is_asked_with_the_states(self):
        """Case 57: those that are well and not tried yet; the first choice too."""
        strategy = Own(lambda candidates: candidates[-1])
        fleet = Fleet(c=503)
        group = group_of(selection=strategy)
        async with fleet.session(group, retrying(0.0)) as client:
            await call(client)

        assert [(1, ["a", "b", "c"]), (2, ["a", "b"])] == strategy.asked
        assert "cb" == fleet.text

    async def test_sees_what_is_known_of_them(self):
        """Case 57: endpoint, weight, in flight, latency."""
        seen = []

        def choose(candidates):
            seen.extend(
                (str(each.endpoint), each.weight, each.in_flight, each.latency)
                for each in candidates
            )
            return candidates[0]

        fleet = Fleet(a=after(0.5, 200))
        async with fleet.session(group_of("a", selection=Own(choose))) as client:
            first = asyncio.create_task(call(client))
            await asyncio.sleep(0.25)
            await call(client)
            await first
            await call(client)

        assert [
            ("a.example", 1.0, 0, None),
            ("a.example", 1.0, 1, None),
            ("a.example", 1.0, 0, pytest.approx(0.5)),
        ] == seen

    @pytest.mark.parametrize(
        "choose",
        [
            lambda candidates: None,
            lambda candidates: candidates[0].endpoint,
            lambda candidates: "a",
            lambda candidates: state_of(group_of(), "a"),
            lambda candidates: candidates,
        ],
    )
    @pytest.mark.parametrize("strategy", [SAFELY, 0.0])
    async def test_stranger_is_refused(self, choose, strategy):
        """Case 58: to the caller, nothing sent, never retried."""
        fleet = Fleet()
        group = group_of(selection=Own(choose))
        async with fleet.session(group, retrying(strategy)) as client:
            raised, log = await call(client)

        assert isinstance(raised, ValueError)
        assert str(raised).endswith("(expected: one of the candidates)")
        assert str(raised).startswith("select(): ")
        assert ([], 1) == (fleet.asked, log.total_attempts)
        assert {} == out(group)

    async def test_one_that_was_tried_is_a_stranger(self):
        """Case 58: it is no candidate any more, and the answer there was is closed."""
        kept = []

        def choose(candidates):
            kept.extend(candidates)
            return kept[0]

        fleet = Fleet(a=503)
        async with fleet.session(
            group_of("ab", selection=Own(choose)), retrying(0.0)
        ) as client:
            raised, log = await call(client)

        assert isinstance(raised, ValueError)
        assert ("a", 2) == (fleet.text, log.total_attempts)

    async def test_async_one_is_refused(self):
        """Case 58: with no warning of a coroutine that nobody awaits."""

        class Async(EndpointSelectionStrategy):
            async def select(self, ctx, candidates):
                return candidates[0]

        with pytest.raises(ValueError, match="^selection: .*plain"):
            group_of(selection=Async())

    @pytest.mark.parametrize(
        "error", [TimeoutError("mine"), refused(), ZeroDivisionError()]
    )
    async def test_one_that_raises(self, error):
        """Case 57: to the caller, never retried, nothing sent, nothing leaks."""

        def choose(candidates):
            raise error

        fleet = Fleet()
        group = group_of(selection=Own(choose))
        async with fleet.session(group, retrying(SAFELY)) as client:
            raised, log = await call(client)

        assert error is raised
        assert ([], 1, False) == (fleet.asked, log.total_attempts, log.sent)
        assert {0} == {each.in_flight for each in group.states.values()}

    async def test_has_the_usual_settings_of_latency(self):
        """What it sees of it decays in 10 s, and a failure is 1 s."""
        fleet = Fleet(a=503)
        group = group_of(
            "a", selection=Own(lambda candidates: candidates[0]), outlier_detection=None
        )
        async with fleet.session(group) as client:
            await call(client)

        assert 1.0 == state_of(group, "a").latency


def test_ready_made_base_chooses_nothing():
    """Each of them has a way of its own."""
    with pytest.raises(NotImplementedError):
        _BuiltIn().select(None, [state_of(group_of("a"), "a")])


@pytest.mark.parametrize(
    ("strategy", "name"),
    [
        (PEAK_EWMA, "peak_ewma"),
        (LEAST, "least_requests"),
        (ROUND_ROBIN, "round_robin"),
        (IN_ORDER, "in_order"),
    ],
)
async def test_ready_made_ones_can_be_asked(strategy, name):
    """A subclass of a user's own may leave a choice to one of them."""
    seen = []

    class Leaving(EndpointSelectionStrategy):
        def select(self, ctx, candidates):
            seen.append(strategy.select(ctx, candidates))
            return seen[-1]

    await asked(Fleet(), group_of("ab", selection=Leaving()), 2)

    assert 2 == len(seen)
    assert repr(strategy).startswith(f"EndpointSelectionStrategy.{name}(")


@pytest.mark.parametrize("strategy", [PEAK_EWMA, LEAST, ROUND_ROBIN, IN_ORDER])
async def test_one_endpoint_is_always_it(strategy):
    """No strategy draws two of one."""
    assert "aaa" == await asked(Fleet(), group_of("a", selection=strategy), 3)
