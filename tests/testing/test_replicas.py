"""Several simulated servers: which of them gets a request."""

from __future__ import annotations

import pytest
from simulated import ScriptedServer

from aioretry_smithy import (
    DynamicEndpointGroup,
    Endpoint,
    EndpointGroup,
    SessionBuilder,
)
from aioretry_smithy.testing import simulate
from aioretry_smithy.testing._fleet import SimulatedProcess, SimulatedReplicas

FEW = {"clients": 2, "rate": 20.0, "capacity": 60.0, "outage": "2:4:1", "duration": 8.0}
URLS = "http://a.example", "http://b.example/v1", "http://b.example/v1/eu"


def of_numbers(*numbers):
    drawn = iter(numbers)
    return SimulatedReplicas([ScriptedServer([])] * 4, lambda: next(drawn))


def process_of(base, numbers=()):
    return SimulatedProcess(SessionBuilder(base), of_numbers(*numbers))


async def test_without_endpoints_any_of_them_is_asked():
    """By chance."""
    process = process_of(None, [0.0, 0.99, 0.5])
    async with process.session:
        assert [0, 3, 2] == [process.replica_of("http://x.example/") for _ in range(3)]


def test_one_server_takes_no_chance():
    """So the numbers of simulations with one stay what they were."""
    assert 0 == SimulatedReplicas([ScriptedServer([])], lambda: 1 / 0).any()


async def test_endpoint_is_found_by_how_its_urls_begin():
    """By the longest such beginning."""
    bases = *URLS[::-1], "http://c.example"
    process = process_of(EndpointGroup.of(*bases))
    urls = "http://b.example/v1/x", "http://b.example/v1/eu/x", "http://a.example/x"

    async with process.session:
        assert [1, 0, 2] == [process.replica_of(url) for url in urls]
        assert [1, 0, 2] == [process.replica_of(url) for url in urls]


def balanced(*urls, **settings):
    return lambda: SessionBuilder.standard(
        EndpointGroup.of(*urls, **settings), logging=None
    )


def test_calls_of_a_group_go_to_its_endpoints():
    """In their order: the first one dies, and the others get its calls."""
    run = simulate({"ours": balanced(*URLS)}, replicas=3, dead=1, **FEW).runs["ours"]

    assert 1.0 == run.success
    assert run.attempts == tuple(map(sum, zip(*run.by_replica, strict=True)))
    assert run.shares[0] <= 0.1
    assert all(share >= 0.2 for share in run.shares[1:])


@pytest.mark.parametrize("trouble", [{"dead": 1}, {"failing": 1}, {"slow": 20.0}])
def test_chain_without_a_group_meets_the_bad_one_by_chance(trouble):
    """A third of its requests go there."""

    def alone():
        return SessionBuilder().response_timeout(0.5)

    runs = simulate({"alone": alone}, replicas=3, **trouble, **FEW).runs

    assert runs["alone"].shares[0] == pytest.approx(1 / 3, abs=0.15)
    assert runs["alone"].success < 0.95


def test_loops_meet_it_as_sessions_do():
    """Plain loops go to any of them."""
    runs = simulate(replicas=3, dead=1, **FEW).runs

    assert 1.0 == runs["standard chain"].success
    assert runs["no retries"].shares[0] == pytest.approx(1 / 3, abs=0.15)
    assert runs["no retries"].success < runs["plain retries"].success


@pytest.mark.parametrize("status", ["dead", "failing"])
def test_all_may_be_in_trouble(status):
    """Then nothing is answered until it is over."""
    run = simulate({"ours": balanced(*URLS)}, replicas=3, **{status: 3}, **FEW).runs[
        "ours"
    ]

    assert 0 == sum(run.answered[2:6])
    assert run.calls[6:] == run.answered[6:]


def chain_of_too_few():
    return SessionBuilder(EndpointGroup.of(*URLS[:2]))


def chain_of_addresses():
    them = [Endpoint(URLS[0], address=f"192.0.2.{n}") for n in range(3)]
    return SessionBuilder(EndpointGroup.of(*them))


def chain_of_none_yet():
    return SessionBuilder(DynamicEndpointGroup())


@pytest.mark.parametrize(
    "chain", [chain_of_too_few, chain_of_addresses, chain_of_none_yet]
)
def test_group_stands_for_the_replicas(chain):
    """One that has others, or none of its own, is refused."""
    expected = r"group: .*endpoints with URLs of their own, as many as replicas, 3\)$"
    with pytest.raises(ValueError, match=expected):
        simulate({"ours": chain}, replicas=3, **FEW)


async def test_refusal_says_who_refuses():
    """As aiohttp does."""
    builder = SessionBuilder("http://orders.example")
    process = SimulatedProcess(builder, SimulatedReplicas([ScriptedServer([(0, 0.0)])]))
    async with process.session:
        with pytest.raises(OSError, match=r"^Cannot connect to host orders.example:80"):
            await process.session.get("http://orders.example/")
