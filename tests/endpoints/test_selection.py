"""The choice of an endpoint for each request.

Of the cases of endpoints.md (f): 43 to 58.
"""

import asyncio
from collections import Counter

import pytest
from balanced import (
    IN_ORDER,
    ROUND_ROBIN,
    Fleet,
    asked,
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
from aioretry_smithy._endpoints.selection import shuffled_start

PEAK_EWMA = EndpointSelectionStrategy.peak_ewma()
LEAST = EndpointSelectionStrategy.least_requests()


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

    @pytest.mark.parametrize("between", [[], [0]])
    async def test_one_with_more_weight_than_before_has_its_share_at_once(
        self, between, monkeypatch
    ):
        """It need not wait for the turn that it had with little, nor after a pause."""
        monkeypatch.setattr("aioretry_smithy._endpoints.roster.chance", lambda: 0.0)
        fleet = Fleet()
        group = DynamicEndpointGroup(selection=ROUND_ROBIN)
        async with fleet.session(group) as client:
            for weight in (0.001, *between, 1.0):
                group.set_endpoints([Endpoint(url_of("a"), weight=weight), url_of("b")])
                fleet.asked.clear()
                for _ in range(40):
                    await call(client)

        assert {"a": 20, "b": 20} == Counter(fleet.text)

    def test_start_goes_by_weight(self):
        """Where a turn is long, so is what is drawn."""

        class State:
            turn = 0.0

            def __init__(self, weight):
                self.weight = weight

        states = [State(1.0), State(2.0), State(0.5), State(1.0)]
        shuffled_start(states, lambda: 0.3, 10.0)

        assert [10.75, 10.0, 10.5, 10.5] == [each.turn for each in states]


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


class TestInOrder:
    """The first that is well."""

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

    async def test_has_the_usual_settings_of_latency(self):
        """What it sees of it decays in 10 s, and a failure is 1 s."""
        fleet = Fleet(a=503)
        group = group_of(
            "a", selection=Own(lambda candidates: candidates[0]), outlier_detection=None
        )
        async with fleet.session(group) as client:
            await call(client)

        assert 1.0 == state_of(group, "a").latency


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

    @pytest.mark.parametrize("key", ["tenant", None, 7, asyncio.sleep])
    def test_key_is_a_plain_function(self, key):
        """A name of a header is none, nor is one that has to be awaited."""
        with pytest.raises(ValueError, match="^key: .*a plain function"):
            EndpointSelectionStrategy.sticky(key)

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
