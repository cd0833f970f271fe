"""Requests of every kind through chains, to servers that record each byte."""

from __future__ import annotations

import functools

from request_kinds import KINDS
from request_outcomes import outcome
from request_scene import content_to_send, new_tls, opened_scene
from story_chains import CHAINS
from story_log import told_log
from story_text import settled
from story_witness import Witness

from aioretry_smithy import capture_logs

TLS = functools.cache(new_tls)

SCENARIOS = (("full", 0), ("full", 1), ("standard", 0))
"""Chains, and how many requests are answered 503 before."""

OTHERWISE = {"URL with a host too long"}
"""Kinds of which each Python tells another story."""


async def story_of_request(scene, kind, chain, failures):
    """Send a request and one more through a session of its own; tell all of it."""
    witness = Witness()
    scene.wire.failures = failures
    new_session = functools.partial(chain.open, witness)
    with witness.listening(chain.level), capture_logs() as witness.logs:
        told = await outcome(scene, kind, new_session)
    return {
        **settled(told),
        "heard": witness.seen,
        "state": settled([tell() for tell in witness.states]),
        "logs": [told_log(log) for log in witness.logs],
    }


def telling(kind, chain, failures):
    async def tell():
        with content_to_send() as content:
            async with opened_scene(TLS(), content) as scene:
                return await story_of_request(scene, kind, CHAINS[chain], failures)

    return tell


STORIES = {
    f"{chain}: {name}{': 503 first' * failures}": telling(kind, chain, failures)
    for chain, failures in SCENARIOS
    for name, kind in KINDS.items()
    if name not in OTHERWISE
}
"""By name: a function that tells the story."""
