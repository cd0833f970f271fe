"""The choice of an endpoint by a key, the same each time."""

from __future__ import annotations

from collections import Counter

import pytest
from balanced import Fleet, asked, at, call, group_of, out, url_of
from chains import SAFELY, refused, retrying

from aioretry_smithy import (
    DynamicEndpointGroup,
    Endpoint,
    EndpointGroup,
    EndpointSelectionStrategy,
)


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
