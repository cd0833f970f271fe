"""A simulation and the program around it do not affect each other."""

from __future__ import annotations

import logging
import random
from contextlib import suppress

from aioretry_smithy._simulation.isolation import chance, isolated


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
