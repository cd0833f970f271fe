"""Groups of endpoints of all kinds, which tell a witness what becomes of them."""

import asyncio
import itertools
from types import SimpleNamespace

import aiohttp
import pytest
from balanced import Health
from fake_responses import sent_to
from story_service import BASE
from story_text import is_time_virtual, rounded, told_context

from aioretry_smithy import (
    DynamicEndpointGroup,
    Endpoint,
    EndpointGroup,
    EndpointGroupListener,
    EndpointSelectionStrategy,
    HealthCheckedEndpointGroup,
    OutlierDetection,
)

IN_ORDER = EndpointSelectionStrategy.in_order()
QUICK = OutlierDetection(consecutive_failures=1)
"""One failure is enough to be out for 5 s."""


class GroupWitness(EndpointGroupListener):
    """Notes what a group tells."""

    def __init__(self, witness):
        self._note = witness.note

    def on_endpoints_changed(self, group, endpoints):
        self._note("changed", group.name, [*map(str, endpoints)])

    def on_ejected(self, group, endpoint, reason, until):
        self._note("ejected", group.name, str(endpoint), reason, moment(until))

    def on_returned(self, group, endpoint):
        self._note("returned", group.name, str(endpoint))


class FailingListener(GroupWitness):
    """Raises on each event."""

    def on_ejected(self, group, endpoint, reason, until):
        super().on_ejected(group, endpoint, reason, until)
        raise LookupError("listener")


class Choosing(EndpointSelectionStrategy):
    """Chooses the last one, and notes what it is asked."""

    def __init__(self, witness):
        self._note = witness.note

    def select(self, ctx, candidates):
        names = [str(each.endpoint) for each in candidates]
        self._note("selects", told_context(ctx), names)
        return candidates[-1]


class FailingChoice(Choosing):
    """Raises from the second choice on."""

    def __init__(self, witness):
        super().__init__(witness)
        self._choices = itertools.count()

    def select(self, ctx, candidates):
        chosen = super().select(ctx, candidates)
        if next(self._choices):
            raise LookupError("selection")
        return chosen


class ForeignChoice(Choosing):
    """Returns what is no candidate."""

    def select(self, ctx, candidates):
        super().select(ctx, candidates)
        return "http://a.test"


def looked_at(witness, group):
    """Let the witness look at a group when all is over, and return it."""
    witness.states.append(
        lambda: [group.name, [*map(told_state, group.states.values())]]
    )
    return group


def moment(seconds):
    """Tell a time, or how long something took, where that is the same each time."""
    return rounded(seconds) if seconds is None or is_time_virtual() else "some"


def told_state(state):
    return {
        "endpoint": repr(state),
        "weight": state.weight,
        "in flight": state.in_flight,
        "latency": moment(state.latency),
        "out": (state.reason, moment(state.ejected_until)),
        "health": state.health,
    }


def settings_of(witness, settings):
    """Return settings of a group, made for the witness where they are classes."""
    usual = {
        "selection": IN_ORDER,
        "outlier_detection": QUICK,
        "listener": GroupWitness,
        "name": "shop",
    }
    return {
        name: each(witness) if isinstance(each, type) else each
        for name, each in (usual | settings).items()
    }


def given(*names, **settings):
    """Make a group of servers with these names."""

    async def base(witness, stack):
        urls = [f"http://{each}.test" for each in names]
        made = EndpointGroup.of(*urls, **settings_of(witness, settings))
        return looked_at(witness, made)

    return base


def of_endpoints(*endpoints, **settings):
    async def base(witness, stack):
        made = EndpointGroup.of(*endpoints, **settings_of(witness, settings))
        return looked_at(witness, made)

    return base


def followed(*bases):
    """Let each group serve while none of those before is well."""

    async def base(witness, stack):
        first, *others = [await each(witness, stack) for each in bases]
        for other in others:
            first = first.or_else(other)
        return looked_at(witness, first)

    return base


def set_later(*lists, **settings):
    """Set the endpoints of a group at some times, each list with its own."""

    async def base(witness, stack):
        made = DynamicEndpointGroup(**settings_of(witness, settings))
        loop = asyncio.get_running_loop()
        for seconds, names in lists:
            urls = [f"http://{each}.test" for each in names]
            if seconds:
                loop.call_later(seconds, made.set_endpoints, urls)
            else:
                made.set_endpoints(urls)
        return looked_at(witness, made)

    return base


def looked_up(*answers, name="shop", **settings):
    """Ask a resolver, which answers in turn, after a while where that is said."""

    async def base(witness, stack):
        left = [*answers]

        async def resolver(host, port):
            witness.note("resolves", host, port)
            answer = left.pop(0) if left[1:] else left[0]
            if isinstance(answer, float):
                await asyncio.sleep(answer)
                answer = left.pop(0) if left[1:] else left[0]
            if isinstance(answer, type):
                raise answer("no such name")
            return [(address, 10.0) for address in answer]

        made = EndpointGroup.dns(
            f"http://{name}.test", resolver=resolver, **settings_of(witness, settings)
        )
        return looked_at(witness, made)

    return base


def checked(inner, **answers):
    """Ask the servers of a group for their health, while the session is open."""

    async def base(witness, stack):
        health = sent_to(Health(), stack.enter_context(pytest.MonkeyPatch.context()))
        health.answers = {f"{name}.test": each for name, each in answers.items()}
        witness.states.append(lambda: [rounded(at) for at, *_ in health.asked])
        session = await stack.enter_async_context(aiohttp.ClientSession())
        made = HealthCheckedEndpointGroup(
            await inner(witness, stack), "/health", session=session
        )
        return await stack.enter_async_context(made)

    return base


def not_connected(ctx, request):
    """Be a server that takes no connections."""
    # The key of a connection is another one in each version of aiohttp.
    key = SimpleNamespace(host=request.full_url().host, port=80, ssl=True)
    raise aiohttp.ClientConnectorError(key, OSError(111, "Connect call failed"))


GROUPS = {
    "in order": given("a", "b", "c"),
    "round robin": given(
        "a", "b", "c", selection=EndpointSelectionStrategy.round_robin()
    ),
    "peak EWMA": given("a", "b", "c", selection=EndpointSelectionStrategy.peak_ewma()),
    "least requests": given(
        "a", "b", "c", selection=EndpointSelectionStrategy.least_requests()
    ),
    "sticky": given(
        "a",
        "b",
        "c",
        selection=EndpointSelectionStrategy.sticky(lambda ctx: ctx.request.method),
    ),
    "choice of one's own": given("c", "b", "a", selection=Choosing),
    "one only": given("a"),
    "nothing is ejected": given("a", "b", outlier_detection=None),
    "usual detection": given("a", "b", outlier_detection=OutlierDetection()),
    "with weights": of_endpoints(
        Endpoint("http://a.test/v1", weight=3.0),
        Endpoint("http://b.test/v2/", weight=1.0),
        Endpoint("http://c.test", weight=0.0),
        selection=EndpointSelectionStrategy.round_robin(),
    ),
    "or else": followed(given("a"), given("b", "c", name="far")),
    "or else, thrice": followed(
        given("a", name="near"), given("b", name="far"), given("c", name="farthest")
    ),
    "addresses": of_endpoints(
        Endpoint(BASE, address="192.0.2.1"), Endpoint(BASE, address="192.0.2.2")
    ),
    "looked up": looked_up(["192.0.2.1", "192.0.2.2"]),
    "checked": checked(given("a", "b", "c")),
}
"""By name: what makes the group."""

SLOW_GROUPS = {
    "set after a second": set_later((1.0, "ab")),
    "set anew": set_later((0.0, "ab"), (1.5, "bc")),
    "emptied": set_later((0.0, "ab"), (1.5, "")),
    "never set": set_later(),
    "looked up in a second": looked_up(1.0, ["192.0.2.1"]),
    "looked up in vain": looked_up(OSError),
    "looked up the second time": looked_up(OSError, ["192.0.2.1", "192.0.2.2"]),
    "looked up for nothing": looked_up([], selection_timeout=1.0),
    "looked up without end": looked_up(3600.0, []),
    "never set, or else": followed(set_later(), given("b", "c", name="far")),
    "set later, or else": followed(set_later((1.0, "a")), given("b", name="far")),
    "never set, or else never set": followed(set_later(), set_later(name="far")),
    "looked up slowly, or else": followed(
        looked_up(1.0, ["192.0.2.1"]), given("b", name="far")
    ),
    "looked up in vain, or else": followed(looked_up(OSError), given("b", name="far")),
    "checked slowly": checked(given("a", "b"), a=0.5, b=0.25),
    "one is not well": checked(given("a", "b", "c"), a=503),
    "none is well": checked(given("a", "b"), a=503, b=ConnectionResetError("no")),
    "checked, or else": checked(followed(given("a"), given("b", name="far")), a=503),
    "choice fails": given("a", "b", selection=FailingChoice),
    "choice of none": given("a", "b", selection=ForeignChoice),
    "sticky by no text": given(
        "a", "b", selection=EndpointSelectionStrategy.sticky(lambda ctx: 7)
    ),
    "failing listener": given("a", "b", listener=FailingListener),
}
"""By name: likewise; these change, or fail, on their own."""
