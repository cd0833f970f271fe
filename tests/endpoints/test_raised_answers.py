"""Endpoints are judged by what is raised for a status as by an answer with it."""

from __future__ import annotations

import pytest
from balanced import Fleet, call, group_of, out, state_of
from calls import raised
from chains import SAFELY, after, retrying

from aioretry_smithy import OutlierDetection

pytestmark = pytest.mark.usefixtures("shortest_ejections")

ONE = OutlierDetection(consecutive_failures=1)


async def test_raised_503_with_a_hint_sets_its_endpoint_aside():
    """For as long as it says; the call goes elsewhere without that wait."""
    group = group_of("ab")
    fleet = Fleet(a=after(0.0, raised(503, {"Retry-After": "7"})))
    async with fleet.session(group, retrying(SAFELY)) as client:
        status, log = await call(client)

        assert {"a": "retry_after"} == out(group)
        assert 7.0 == state_of(group, "a").ejected_until
    assert (200, "ab", 0.0) == (status, fleet.text, log.children[0].delay)


async def test_raised_429_with_a_hint_is_waited_for():
    """It is the service's, not one endpoint's."""
    group = group_of("ab")
    throttled = after(0.0, raised(429, {"Retry-After": "7"}))
    fleet = Fleet(a=[throttled, 200], b=throttled)
    async with fleet.session(group, retrying(SAFELY)) as client:
        _, log = await call(client)

    assert {} == out(group)
    assert 7.0 <= log.children[0].delay


async def test_raised_404_in_no_time_draws_no_traffic():
    """That a request was wrong says nothing of how quick an endpoint is."""
    estimates = []
    for answer in (404, raised(404)):
        group = group_of("ab", outlier_detection=ONE)
        fleet = Fleet(a=[after(0.1, 200), after(0.0, answer)])
        async with fleet.session(group) as client:
            for _ in range(2):
                await call(client)
        estimates.append(state_of(group, "a").latency)

    assert estimates[0] == estimates[1]
