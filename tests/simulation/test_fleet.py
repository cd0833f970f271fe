"""Many processes with one chain: what each of them makes, and what they share."""

from __future__ import annotations

import pytest
from simulated import settings

from aioretry_smithy import SessionBuilder, client_decorator
from aioretry_smithy._simulation.fleet import run_fleet

SETTINGS = settings(clients=3, rate=5.0, capacity=100.0)


async def test_all_calls_are_made_and_ended():
    """Calls begin until the duration is over; those under way end, sessions close."""
    processes = await run_fleet("chain", SessionBuilder, SETTINGS)
    begun = [process.calls for process in processes]

    assert 3 == len(processes)
    assert {0, 1, 2, 3} == {second for calls in begun for second in calls}
    assert begun == [process.answered for process in processes]
    assert all(process.session.closed for process in processes)


async def test_each_process_has_a_chain_of_its_own():
    """The function is called for each process."""
    builders = []

    def chain():
        builders.append(SessionBuilder())
        return builders[-1]

    await run_fleet("chain", chain, SETTINGS)

    assert 3 == len(builders)


ONE_BUILDER = SessionBuilder()


@pytest.mark.parametrize("chain", [lambda: None, lambda: ONE_BUILDER])
async def test_chain_has_to_be_new_each_time(chain):
    """A function that returns no builder, or one that processes share, is refused."""
    with pytest.raises(ValueError, match=r"^chain\(\): .* a new SessionBuilder each"):
        await run_fleet("chain", chain, SETTINGS)


async def test_mistake_in_a_chain_ends_the_simulation():
    """The first error that is no failure of a request comes out as it is."""

    @client_decorator
    async def mistaken(delegate, ctx, request):
        raise KeyError("token")

    with pytest.raises(KeyError, match="token"):
        await run_fleet("chain", lambda: SessionBuilder().decorator(mistaken), SETTINGS)
