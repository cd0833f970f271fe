"""Many processes with one chain: what they share, and what it leaves alone."""

from __future__ import annotations

import logging
import random
from contextlib import suppress

import pytest
from simulated import settings

from aioretry_smithy import SessionBuilder, client_decorator
from aioretry_smithy.testing._fleet import chance, isolated, run_fleet

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


def test_shared_chance_is_seeded():
    """In the block the module :mod:`random` gives the numbers of the seed."""
    numbers = []
    for _ in range(2):
        with isolated(7):
            numbers.append(random.random())

    assert [chance(7, 2).random()] * 2 == numbers


def test_chance_of_one_kind_is_its_own():
    """Sources of another kind or seed give other numbers."""
    sources = chance(7, 0), chance(7, 1), chance(8, 0)

    assert 3 == len({source.random() for source in sources})


def test_shared_chance_goes_on_as_if_nothing_had_been():
    """After the block the numbers are those that would have come without it."""
    random.seed(1)
    expected = random.random()
    random.seed(1)

    with isolated(7):
        random.random()

    assert expected == random.random()


def test_error_ends_the_block_too():
    """An error in the block leaves chance as it was."""
    random.seed(1)
    before = random.getstate()

    with suppress(KeyError), isolated(7):
        raise KeyError

    assert before == random.getstate()


def test_nothing_is_logged_in_the_block(caplog):
    """Thousands of failed calls would be as many lines; afterwards logs go on."""
    logger = logging.getLogger("aioretry_smithy")
    with isolated(7):
        logger.critical("inside")
    logger.critical("after")

    assert ["after"] == caplog.messages
