"""Circuit breakers of endpoints, at which requests may wait."""

from __future__ import annotations

from balanced import Fleet, call, group_of
from chains import SAFELY, now, retrying

from aioretry_smithy import CircuitBreaker, CircuitBreakerClient

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
