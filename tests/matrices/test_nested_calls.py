"""A call inside an attempt needs nothing that the attempt holds, on real sockets."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest
from nested_calls import CALLERS, HELD, INNER, Fetch, Scene
from until import until

from aioretry_smithy import CircuitState, FailFastError

MANY = 4

pytestmark = [
    pytest.mark.parametrize("caller", CALLERS, ids=lambda each: each.__name__),
    pytest.mark.parametrize("held", HELD, ids=lambda each: each.__name__),
]


@pytest.fixture
def opened(serving):
    """A function that opens a session whose attempts hold something."""

    @asynccontextmanager
    async def opened(held, caller, **settings):
        scene = Scene(held, caller(), **settings)
        server = await serving(scene.respond)
        async with scene.open(server.make_url("/")):
            await held.prime(scene)
            yield scene

    return opened


def check(scene):
    """Check that no call inside waited or was refused, and that nothing is left."""
    assert [] == scene.failures
    seen = [(each.response_status, each.delay_source) for each in scene.logs]
    assert {(200, None)} == {*seen}
    assert {None} == {each.parent for each in scene.logs}
    assert CircuitState.CLOSED is scene.breaker.state
    assert scene.held.is_idle


async def test_one_call(opened, held, caller):
    """It goes through, and what it held is free then."""
    async with opened(held(1), caller) as scene:
        outcome = await scene.order()

    assert 200 == outcome
    check(scene)


async def test_many_at_once(opened, held, caller):
    """They hold all that there is; of a circuit breaker one is the trial."""
    async with opened(held(MANY), caller) as scene:
        outcomes = await asyncio.gather(*(scene.order() for _ in range(MANY)))

    others = 200 if held.is_shared else FailFastError
    assert [200, *[others] * (MANY - 1)] == outcomes
    inside = MANY if held.is_shared and caller is not Fetch else 1
    assert inside == scene.asked.count(INNER)
    check(scene)


async def test_first_caller_is_cancelled(opened, held, caller):
    """While its call inside is under way; the next one does not miss anything."""
    async with opened(held(1), caller) as scene:
        scene.gate.clear()
        first = asyncio.create_task(scene.order())
        second = None
        try:
            await until(lambda: INNER in scene.asked)
            if held.is_shared:
                second = asyncio.create_task(scene.order())
                await asyncio.sleep(0)
        finally:
            first.cancel()
            with suppress(asyncio.CancelledError):
                await first
            scene.gate.set()
            outcome = await (scene.order() if second is None else second)

    assert 200 == outcome
    check(scene)


async def test_hedge(opened, held, caller):
    """Each request of the race rides on what is its own."""
    async with opened(held(2), caller, is_hedged=True) as scene:
        outcome = await scene.order()

    assert 200 == outcome
    check(scene)
