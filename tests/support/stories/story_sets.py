"""All stories, in sets that are recorded in a file each, and how one is told."""

from __future__ import annotations

import asyncio
import functools
import importlib
import os

import hypothesis
import story_at_odds
import story_bodies
import story_elsewhere
import story_endpoints
import story_faults
import story_functions
import story_hedges
import story_keys
import story_limits
import story_operations
import story_requests
import story_resumed
import story_tokens
import story_waits
from story import story
from story_chains import CHAINS
from story_data import OLDER, plain
from story_scenarios import SCENARIOS
from story_text import is_time_virtual

from aioretry_smithy.testing import VirtualTimeLoop


def stories_of(scenarios):
    return {name: functools.partial(story, each) for name, each in scenarios.items()}


SETS = {
    "calls": stories_of(SCENARIOS),
    "hedges": stories_of(story_hedges.SCENARIOS),
    "bodies": stories_of(story_bodies.SCENARIOS),
    "odd": story_at_odds.STORIES,
    "requests": story_requests.STORIES,
    "limits": story_limits.STORIES,
    "faults": story_faults.STORIES,
    "functions": story_functions.STORIES,
    "operations": story_operations.STORIES,
    "waits": story_waits.STORIES,
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

LEFT_OUT = {
    "uvloop": [name for name in SETS["calls"] if name.endswith(": refused")],
}
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
