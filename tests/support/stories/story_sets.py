"""All stories, in sets that are recorded in a file each, and how one is told."""

import asyncio
import functools
import importlib
import os

import hypothesis
import story_at_odds
import story_bodies
import story_elsewhere
import story_endpoints
import story_functions
import story_hedges
import story_keys
import story_limits
import story_resumed
import story_tokens
from request_kind import content_to_send, new_tls, opened_scene
from request_kinds import KINDS, outcome
from story import Scenario, story
from story_calls import ANSWERS, CANCELLED, REQUESTS, SLOW_ANSWERS, WAYS
from story_chains import CHAINS
from story_text import OLDER, Witness, is_time_virtual, plain, settled, told_log

from aioretry_smithy import capture_logs
from aioretry_smithy.testing import VirtualTimeLoop

TLS = functools.cache(new_tls)

THROUGH = (("full", 0), ("full", 1), ("standard", 0))
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


REQUEST_STORIES = {
    f"{chain}: {name}{': 503 first' * failures}": telling(kind, chain, failures)
    for chain, failures in THROUGH
    for name, kind in KINDS.items()
    if name not in OTHERWISE
}
"""By name: a function that tells the story."""


FULL, STANDARD = CHAINS["full"], CHAINS["standard"]
MAIN = ("retry", "full", "standard", "standard, function outside")
"""Chains that meet all answers."""

SMOOTH = ("200", "401", "404")
TELLING = (*SMOOTH, "503, 200", "503", "cut before the headers")
"""Answers that all chains meet."""

OUTCOMES = ("200", "204", "404", "503, 200", "cut each time", "large")
"""Answers that all requests, or all ways of the caller, meet."""

OUTCOMES_OF = {
    "in a task group": ("200", "404 each time"),
    "twice at once": ("200", "204", "404", "503, 200", "cut each time"),
}
"""Answers for two ways in which the others have no fixed outcome: chance decides which
of three calls is retried, whether a large body is there before a second answer, and
which of three is read first."""

SCENARIOS = {
    **{
        f"{chain}: {name}": Scenario(CHAINS[chain], ANSWERS[name])
        for chain in MAIN
        for name in ANSWERS
    },
    **{
        f"{chain}: {name}": Scenario(CHAINS[chain], ANSWERS[name])
        for chain in CHAINS
        for name in (SMOOTH if CHAINS[chain].delays else TELLING)
    },
    **{
        f"full: {request}: {name}": Scenario(FULL, ANSWERS[name], REQUESTS[request])
        for request in REQUESTS
        for name in ("200", "503, 200", "cut each time")
    },
    **{
        f"standard: {request}: {name}": Scenario(
            STANDARD, ANSWERS[name], REQUESTS[request]
        )
        for request in REQUESTS
        for name in ("200", "404")
    },
    **{
        f"{chain}: {way}: {name}": Scenario(CHAINS[chain], ANSWERS[name], way=WAYS[way])
        for chain in ("full", "standard")
        for way in WAYS
        for name in OUTCOMES_OF.get(way, OUTCOMES)
    },
    **{
        f"{chain}: {name}": Scenario(CHAINS[chain], SLOW_ANSWERS[name])
        for chain in ("full", "attempts of 0.4 s")
        for name in SLOW_ANSWERS
        # Without a limit to an attempt it would wait for minutes.
        if (chain, name) != ("full", "silence, then 200")
    },
    **{
        f"{chain}: cancelled {name}": Scenario(CHAINS[chain], answers, way=way)
        for chain in ("full", "standard", "content strategy")
        for name, (way, answers) in CANCELLED.items()
        # That reads a body before there is a response.
        if (chain, name) != ("content strategy", "in the body")
    },
}
"""By name."""


def stories_of(scenarios):
    return {name: functools.partial(story, each) for name, each in scenarios.items()}


SETS = {
    "calls": stories_of(SCENARIOS),
    "hedges": stories_of(story_hedges.SCENARIOS),
    "bodies": stories_of(story_bodies.SCENARIOS),
    "odd": story_at_odds.STORIES,
    "requests": REQUEST_STORIES,
    "limits": story_limits.STORIES,
    "faults": story_bodies.STORIES,
    "functions": story_functions.STORIES,
    "operations": story_functions.OPERATIONS,
    "waits": story_limits.WAIT_STORIES,
    "elsewhere": story_elsewhere.STORIES,
    "endpoints": story_endpoints.STORIES,
    "resumed": story_resumed.STORIES,
    "tokens": story_tokens.STORIES,
    "keys": story_keys.STORIES,
}
"""By name: functions that tell a story, by name."""

LOOP = os.environ.get("AIORETRY_SMITHY_TEST_LOOP", "asyncio")
"""The loop that sockets are met on."""

IN_VIRTUAL_TIME = (
    "limits",
    "faults",
    "functions",
    "operations",
    "waits",
    "endpoints",
    "resumed",
    "tokens",
    "keys",
)
"""The sets that meet no socket."""

LEFT_OUT = {"uvloop": [name for name in SETS["calls"] if name.endswith(": refused")]}
"""By the loop: calls of which it tells another story.

uvloop knows that a connection was reset when it writes to it, asyncio when it reads.
"""

PATIENCE = 60.0
"""Seconds after which a story hangs."""


def tell(group, name):
    """Tell a story in a loop of its own, as plain values."""
    with asyncio.Runner(loop_factory=_loop_of(group)) as runner:
        return plain(runner.run(_told(SETS[group][name])))


def drawn(names):
    """Return all names before a release; of them every sixth, for a run to wait for."""
    names = list(names)
    is_release = hypothesis.settings.get_current_profile_name() == "release"
    return names if is_release else names[::6]


def is_all_here():
    """Say whether no story is missing for want of an extra or a newer aiohttp."""
    return OLDER is None and {"traced", "counted"} <= CHAINS.keys()


def _loop_of(group):
    if group in IN_VIRTUAL_TIME:
        return VirtualTimeLoop
    return importlib.import_module(LOOP).new_event_loop


async def _told(tell):
    # In virtual time, what hangs is a RuntimeError.
    async with asyncio.timeout(None if is_time_virtual() else PATIENCE):
        told = await tell()
    await asyncio.sleep(0)  # a task cancelled last needs one more turn to end
    left = asyncio.all_tasks() - {asyncio.current_task()}
    return {**told, "tasks left": len(left)}
