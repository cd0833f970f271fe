"""Ways to call one of several endpoints, and what their choice is beside."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial

from calling import Variant, getting

from aioretry_smithy import EndpointGroup, SessionBuilder

ENDPOINTS = "http://a.example", "http://b.example", "http://c.example"
PATHS = [f"/orders/{number}" for number in range(100)]
_JOINED = {path: f"{ENDPOINTS[0]}{path}" for path in PATHS}
_AS_THEY_ARE = {path: path for path in PATHS}

BALANCED = "balanced"
"""The kind of the scenario with paths."""

CHOSEN = "chosen"
"""The kind of the scenario with nothing but arithmetic."""

JOINED = "ours: full, joined URLs"
GROUP = "ours: full, 3 endpoints"
BARE_GROUP = "ours: balancing alone, 3 endpoints"
NO_CHOICE = "an empty coroutine"
CHOICE = "ours: choice, begin and end"


def new_group():
    return EndpointGroup.of(*ENDPOINTS)


@asynccontextmanager
async def chain(group, *decorators):
    """Look up the URL of a path on both sides: what that costs is not compared."""
    urls = _JOINED if group is None else _AS_THEY_ARE
    builder = SessionBuilder(group)
    for decorator in decorators:
        builder.decorator(decorator)
    async with builder.build() as session:
        send = getting(session)

        async def call(path, **options):
            return await send(urls[path], **options)

        yield call


@asynccontextmanager
async def no_choice():
    async def call(path):
        return 200

    yield call


@asynccontextmanager
async def choice():
    """Choose, begin and end as the hooks do, without a call."""
    loop = asyncio.get_running_loop()
    roster = new_group()._roster_in(loop)
    choose = roster.selection._choose
    for state in roster.states:
        state.estimate.note(0.01, loop.time())
    roster.settle()
    unused = None
    now = loop.time()

    async def call(path):
        state = choose(unused, roster.well)
        state.in_flight += 1
        state.estimate.note(0.01, now)
        state.in_flight -= 1
        return 200

    yield call


def balanced(*full):
    """Return the variants of both kinds, with the decorators of a full chain."""
    paths = partial(Variant, kind="ours", group=BALANCED)
    numbers = partial(Variant, kind="ours", group=CHOSEN)
    return [
        paths(JOINED, partial(chain, None, *full)),
        paths(GROUP, partial(chain, new_group(), *full)),
        paths(BARE_GROUP, partial(chain, new_group()), retries=False),
        numbers(NO_CHOICE, no_choice, retries=False),
        numbers(CHOICE, choice, retries=False),
    ]
