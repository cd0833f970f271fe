"""Names with addresses of both families, of which IPv6 serves when IPv4 cannot."""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
from dataclasses import dataclass

import aiohttp
import pytest
from balanced import call
from chains import chain, now, refused, retrying

from aioretry_smithy import (
    EndpointGroup,
    EndpointGroupListener,
    EndpointSelectionStrategy,
    OutlierDetection,
    RetryStrategy,
)
from aioretry_smithy.testing import ScriptedTransport

SERVICE = "http://orders.example"
IPV4 = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
IPV6 = ["fd00::1", "fd00::2", "fd00::3"]
DURING = 10.0, 20.0
"""An outage."""


def unreachable():
    """Fail as where there is no way to an address."""
    key = refused()._conn_key
    return aiohttp.ClientConnectorError(key, OSError(101, "Network is unreachable"))


@dataclass
class Within:
    """What is answered from a time to another; 200 else."""

    begin: float
    end: float
    answer: object

    def at(self, moment):
        return self.answer if self.begin <= moment < self.end else 200


class Addresses:
    """A service whose addresses answer 200, unless they are told otherwise.

    Args:
        ipv4: The answer of those of IPv4: a status, what makes a failure, or when.
        ipv6: Likewise.
    """

    def __init__(self, ipv4=200, ipv6=200):
        self.answers = {4: ipv4, 6: ipv6}
        self.asked = []

    def answer(self, ctx, request):
        address = ctx.endpoint.address
        self.asked.append((now(), address))
        answer = self.answers[6 if ":" in address else 4]
        if isinstance(answer, Within):
            answer = answer.at(now())
        return answer() if callable(answer) else answer

    def asked_of(self, family, since=0.0):
        """Return how many requests went to a family since then."""
        return sum(
            (":" in address) == (family == 6) and at >= since
            for at, address in self.asked
        )

    def session(self, group, *decorators, **settings):
        transport = ScriptedTransport(itertools.repeat(self.answer))
        return chain(transport, *decorators, base_url=group, **settings).build()


def group_of(*addresses, ttl=3600.0, **settings):
    async def resolve(host, port):
        return [(each, ttl) for each in addresses]

    return EndpointGroup.dns(
        SERVICE, resolver=resolve, refresh=(1.0, 3600.0), **settings
    )


async def played(addresses, group, *decorators, until=40.0, rate=5.0):
    """Make calls one after another's beginning; return when those began that failed."""
    failed = []

    async def one(client):
        began = now()
        status, _ = await call(client)
        if status != 200:
            failed.append(began)

    async with addresses.session(group, *decorators) as client:
        calls = []
        while now() < until:
            calls.append(asyncio.create_task(one(client)))
            await asyncio.sleep(1.0 / rate)
        await asyncio.gather(*calls)
    return failed


NAMES = {
    "three of each": (*IPV4, *IPV6),
    "one of each": (IPV4[0], IPV6[0]),
    "more of IPv4": (*IPV4, IPV6[0]),
    "more of IPv6": (IPV4[0], *IPV6),
    "IPv6 first": (*IPV6, *IPV4),
}
each_name = pytest.mark.parametrize("listed", NAMES.values(), ids=NAMES)
each_selection = pytest.mark.parametrize(
    "selection",
    [
        EndpointSelectionStrategy.peak_ewma(),
        EndpointSelectionStrategy.peak_ewma(failure_penalty=0.0),
        EndpointSelectionStrategy.round_robin(),
        EndpointSelectionStrategy.least_requests(),
    ],
    ids=["peak_ewma", "no penalty", "round_robin", "least_requests"],
)
each_detection = pytest.mark.parametrize(
    "detection", [OutlierDetection(), None], ids=["detection", "none"]
)
SAFELY = retrying(RetryStrategy.failsafe(), max_total_attempts=6)


@each_name
@each_selection
@pytest.mark.slow
async def test_no_call_is_lost_once_an_outage_is_over(listed, selection):
    """Where IPv6 is listed, and cannot be reached from here."""
    group = group_of(*listed, selection=selection)
    addresses = Addresses(ipv4=Within(*DURING, refused), ipv6=unreachable)
    failed = await played(addresses, group, SAFELY)

    assert failed
    assert [] == [at for at in failed if at >= DURING[1]]
    # A few who fail during the outage find out that there is no way.
    assert 0 == addresses.asked_of(6, since=DURING[1] + 5.0)


@pytest.mark.slow
@each_name
async def test_ipv6_is_not_asked_while_ipv4_serves(listed):
    """Whatever else goes wrong with it."""
    group = group_of(*listed)
    addresses = Addresses(ipv4=Within(*DURING, 503))
    await played(addresses, group, SAFELY)

    assert 0 == addresses.asked_of(6)


@pytest.mark.slow
@each_name
@each_detection
async def test_ipv6_serves_while_no_ipv4_address_can_be_connected_to(listed, detection):
    """All calls get through, and IPv4 serves again afterwards."""
    group = group_of(*listed, outlier_detection=detection)
    addresses = Addresses(ipv4=Within(*DURING, refused))
    retried = retrying(RetryStrategy.failsafe(), max_total_attempts=6)
    failed = await played(addresses, group, retried, until=90.0)

    assert [] == failed
    assert 45 < addresses.asked_of(6)
    assert 0 == addresses.asked_of(6, since=85.0)


async def test_ipv6_serves_while_ipv4_swallows_requests():
    """Which may be a way that leads nowhere: nobody can tell."""

    async def swallow(ctx, request):
        await asyncio.sleep(3600.0)

    addresses = Addresses(ipv4=Within(*DURING, lambda: swallow))
    retried = retrying(
        RetryStrategy.failsafe(), max_total_attempts=6, attempt_timeout=0.5
    )
    group = group_of(*IPV4, *IPV6)
    failed = await played(addresses, group, retried, until=100.0)

    assert [] == failed
    assert 30 < addresses.asked_of(6)
    assert 0 == addresses.asked_of(6, since=95.0)


async def test_one_slow_answer_lists_no_ipv6():
    """As long as its address is not left alone."""
    slow = itertools.chain([3600.0], itertools.repeat(0.01))

    async def answer(ctx, request):
        await asyncio.sleep(next(slow))
        return 200

    addresses = Addresses(ipv4=lambda: answer)
    retried = retrying(RetryStrategy.failsafe(), attempt_timeout=0.5)
    failed = await played(addresses, group_of(*IPV4, *IPV6), retried, until=10.0)

    assert [] == failed
    assert (0, True) == (addresses.asked_of(6), next(slow) < 1.0)


@each_name
@pytest.mark.slow
async def test_ipv6_that_comes_back_first_serves(listed):
    """Where both were away, all are asked, and so it is found."""
    addresses = Addresses(
        ipv4=Within(10.0, 50.0, refused), ipv6=Within(0.0, 30.0, unreachable)
    )
    failed = await played(addresses, group_of(*listed), SAFELY)

    assert failed
    assert [] == [at for at in failed if at >= 30.0]
    assert 30 < addresses.asked_of(6, since=30.0)


@each_name
@each_detection
@pytest.mark.slow
async def test_first_address_that_comes_back_serves(listed, detection):
    """The others are still away."""
    first = min(each for each in listed if ":" not in each)
    group = group_of(*listed, outlier_detection=detection)
    addresses = Addresses(ipv4=Within(10.0, 50.0, refused), ipv6=unreachable)
    whole = addresses.answer

    def answer(ctx, request):
        is_back = now() >= 30.0 and ctx.endpoint.address == first
        found = whole(ctx, request)
        return 200 if is_back else found

    addresses.answer = answer
    failed = await played(addresses, group, SAFELY, until=45.0)

    assert failed
    assert [] == [at for at in failed if at >= 30.0]
    assert 0 == addresses.asked_of(6, since=32.0)


async def test_another_group_serves_where_neither_family_can():
    """Then all of the first may be out."""
    second = EndpointGroup.of("http://other.example")
    group = group_of(*IPV4, *IPV6).or_else(second)
    addresses = Addresses(ipv4=Within(*DURING, refused), ipv6=unreachable)
    asked_of_second = []
    whole = addresses.answer

    def answer(ctx, request):
        if ctx.endpoint.address is None:
            asked_of_second.append(now())
            return 200
        return whole(ctx, request)

    addresses.answer = answer
    failed = await played(addresses, group, SAFELY, until=90.0)

    assert [] == failed
    assert 10.0 <= min(asked_of_second)
    assert 45 < len(asked_of_second)
    assert max(asked_of_second) < 85.0


@pytest.mark.parametrize(("many", "most"), [(1, 1), (2, 2), (3, 3)])
async def test_floor_is_over_both_families(many, most):
    """Half of all addresses may be out at once."""
    events = []

    class Listener(EndpointGroupListener):
        def on_ejected(self, group, endpoint, reason, until):
            events.append(endpoint.address)

    group = group_of(*IPV4[:many], *IPV6[:many], listener=Listener())
    addresses = Addresses(ipv4=refused, ipv6=unreachable)
    await played(addresses, group, SAFELY, until=4.0)

    assert {*IPV4[:many]} == {*events}
    assert most == sum(each.ejected_until is not None for each in group.states.values())


async def test_address_of_ipv6_is_not_tried_while_it_does_not_serve():
    """Though it was out when IPv4 came back."""
    addresses = Addresses(ipv4=Within(10.0, 12.0, refused), ipv6=unreachable)
    group = group_of(IPV4[0], *IPV6)
    await played(addresses, group, SAFELY, until=90.0)
    out = [each for each in group.states.values() if each.ejected_until is not None]

    assert {6} == {ipaddress.ip_address(each.endpoint.address).version for each in out}
    assert 0 == addresses.asked_of(6, since=13.0)


async def test_family_without_preference_is_asked_as_ever():
    """Then both are one list."""
    addresses = Addresses()
    await played(addresses, group_of(*IPV4, *IPV6, family="any"), until=10.0)

    assert 0 < addresses.asked_of(6)


async def test_ipv6_alone_serves():
    """There is nothing that it would be the reserve of."""
    addresses = Addresses(ipv6=Within(3.0, 6.0, refused))
    failed = await played(addresses, group_of(*IPV6), until=10.0)

    assert 3.0 == pytest.approx(min(failed))
    assert 6.0 >= max(failed)
