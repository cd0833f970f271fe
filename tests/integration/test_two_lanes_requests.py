"""Every kind of request in both lanes: the same is sent, and the same comes of it."""

from __future__ import annotations

import pytest
from lanes import LANES
from request_kinds import KINDS
from story_chains import CHAINS
from story_requests import SCENARIOS, story_of_request
from story_sets import drawn
from story_text import differences


@pytest.mark.parametrize("name", drawn(KINDS))
async def test_requests_of_both_lanes_are_alike(name, scene):
    """Bytes on the wire, answers, logs and what each part of the chain was told."""
    found = {}
    for chain, failures in SCENARIOS:
        stories = []
        for lane in LANES:
            with LANES[lane]():
                stories.append(
                    await story_of_request(scene, KINDS[name], CHAINS[chain], failures)
                )
        if lines := differences(*stories):
            found[chain, failures] = lines

    assert {} == found
