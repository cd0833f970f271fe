"""Every kind of request in both lanes: the same is sent, and the same comes of it."""

from __future__ import annotations

import pytest
from lanes import LANES, drawn
from request_kinds import KINDS
from request_outcomes import outcome
from story_chains import CHAINS
from story_log import told_log
from story_text import differences, settled
from story_witness import Witness

from aioretry_smithy import capture_logs

SCENARIOS = (("full", 0), ("full", 1), ("standard", 0))
"""Chains, and how many requests are answered 503 before."""


async def story(scene, kind, chain, lane):
    """Send a request and one more through a session of its own; tell all of it."""
    witness = Witness()

    def new_session(**settings):
        with LANES[lane]():
            return chain.open(witness, **settings)

    with witness.listening(chain.level), capture_logs() as witness.logs:
        told = await outcome(scene, kind, new_session)
    return {
        **settled(told),
        "heard": witness.seen,
        "state": settled([tell() for tell in witness.states]),
        "logs": [told_log(log) for log in witness.logs],
    }


@pytest.mark.parametrize("name", drawn(KINDS))
async def test_requests_of_both_lanes_are_alike(name, scene):
    """Bytes on the wire, answers, logs and what each part of the chain was told."""
    found = {}
    for chain, failures in SCENARIOS:
        stories = []
        for lane in LANES:
            scene.wire.failures = failures
            stories.append(await story(scene, KINDS[name], CHAINS[chain], lane))
        if lines := differences(*stories):
            found[chain, failures] = lines

    assert {} == found
