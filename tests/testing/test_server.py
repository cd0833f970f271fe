"""The simulated server: one queue, an outage, a restart, and errors."""

from __future__ import annotations

import pytest
from simulated import settings

from aioretry_smithy.testing._fleet import CUT, REFUSED, SimulatedServer


def new_server(*, chance=lambda: 0.5, **changes):
    limits = {"capacity": 10.0, **changes}
    return SimulatedServer(settings(duration=100.0, **limits), chance)


def ready(server, *times):
    return [server.serve(now)[1] for now in times]


def test_requests_wait_for_those_before():
    """Requests that come together are served one after another."""
    assert pytest.approx([0.1, 0.2, 0.3]) == ready(new_server(), 0.0, 0.0, 0.15)


def test_idle_server_serves_at_once():
    """A request that finds no other is ready after the time of one."""
    assert pytest.approx([0.1, 5.1]) == ready(new_server(), 0.0, 5.0)


def test_outage_makes_it_slow():
    """In an outage a request takes longer, in proportion; else it does not."""
    server = new_server(outage=(10.0, 5.0, 0.2))

    assert pytest.approx([9.1, 10.5, 15.1]) == ready(server, 9.0, 10.0, 15.0)


def test_request_at_the_end_of_an_outage_goes_on_fast():
    """The part of a request that is left when the outage ends takes its usual time."""
    server = new_server(outage=(10.0, 5.0, 0.2))

    assert pytest.approx([15.05]) == ready(server, 14.75)


def test_outage_that_leaves_nothing_holds_requests_up():
    """Without any capacity left, requests are served when the outage is over."""
    server = new_server(outage=(10.0, 5.0, 0.0))

    assert pytest.approx([15.1, 15.2]) == ready(server, 10.0, 12.0)


def test_errors_come_at_their_rate():
    """A request is answered 503 where chance is below the rate."""
    chances = iter([0.09, 0.1])
    server = new_server(error_rate=0.1, chance=lambda: next(chances))

    assert [503, 200] == [server.serve(0.0)[0], server.serve(0.0)[0]]


def replicas(**trouble):
    """Make four servers that can answer 40 a second together."""
    shared = settings(
        duration=100.0, capacity=40.0, outage=(10.0, 5.0, 0.2), replicas=4, **trouble
    )
    return [SimulatedServer(shared, lambda: 0.5, number) for number in range(4)]


def test_replicas_have_the_capacity_together():
    """Each has its part of it, and of what an outage leaves."""
    servers = replicas()

    assert [0.1] * 4 == pytest.approx([server.serve(0.0)[1] for server in servers])
    assert [10.5] * 4 == pytest.approx([server.serve(10.0)[1] for server in servers])


def test_trouble_is_that_of_some_replicas():
    """In the outage some are dead, the next fail, one is slow, others are well."""
    servers = replicas(dead=1, failing=1, slow=3.0)
    before, meanwhile, after = (
        [server.serve(now) for server in servers] for now in (9.0, 10.0, 15.0)
    )

    assert [(200, pytest.approx(9.1))] * 4 == before
    assert [
        (REFUSED, 10.0),
        (503, 10.0),
        (200, pytest.approx(10.3)),
        (200, pytest.approx(10.1)),
    ] == meanwhile
    assert [(200, pytest.approx(15.1))] * 4 == after


def test_restart_cuts_what_it_has_and_takes_no_connections():
    """Until it is back, with an empty queue."""
    server = new_server(restart=(10.0, 3.0))
    before = [server.serve(now) for now in (9.8, 9.8, 9.8)]
    away = [server.serve(now) for now in (10.0, 12.9)]
    back = [server.serve(now) for now in (13.0, 13.0, 20.0)]

    assert [200, 200, CUT] == [status for status, _ in before]
    assert pytest.approx([9.9, 10.0, 10.0]) == [ready for _, ready in before]
    assert [(REFUSED, 10.0), (REFUSED, 12.9)] == away
    assert [(200, pytest.approx(ready)) for ready in (13.1, 13.2, 20.1)] == back


def test_full_queue_does_not_outlive_a_restart():
    """What came before is forgotten, also where nothing came meanwhile."""
    server = new_server(restart=(10.0, 3.0))
    for _ in range(200):
        server.serve(9.0)

    assert (200, pytest.approx(14.1)) == server.serve(14.0)


def test_one_of_several_replicas_restarts():
    """It is the first one."""
    servers = replicas(restart=(20.0, 1.0))

    assert [REFUSED, 200, 200, 200] == [server.serve(20.0)[0] for server in servers]
