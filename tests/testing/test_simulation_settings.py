"""The numbers of a simulation: what they may be."""

from __future__ import annotations

import math

import pytest
from simulated import settings

from aioretry_smithy._context.context import UNSET
from aioretry_smithy.testing._simulation import read_outage, read_restart


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("clients", 0, "an integer >= 1 and <= 1000000"),
        ("clients", 2.0, "an integer >= 1 and <= 1000000"),
        ("clients", True, "an integer >= 1 and <= 1000000"),
        ("clients", 10**30, "an integer >= 1 and <= 1000000"),
        ("rate", 0, "finite and > 0"),
        ("rate", math.inf, "finite and > 0"),
        ("rate", 1e308, "> 0 and <= 1000000"),
        ("capacity", "1000", "finite and > 0"),
        ("duration", -1.0, "finite and > 0"),
        ("error_rate", 1.1, ">= 0 and <= 1"),
        ("error_rate", None, ">= 0 and <= 1"),
        ("seed", "7", "an integer"),
    ],
)
def test_bad_number_is_refused(name, value, expected):
    """A number that is out of range is refused by its name."""
    with pytest.raises(ValueError) as error:
        settings(**{name: value})

    assert f"{name}: {value!r} (expected: {expected})" == str(error.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"replicas": 0}, "replicas: 0 (expected: an integer >= 1 and <= 1000)"),
        ({"replicas": 2.0}, "replicas: 2.0 (expected: an integer >= 1 and <= 1000)"),
        ({"dead": -1}, "dead: -1 (expected: an integer >= 0)"),
        ({"failing": True}, "failing: True (expected: an integer >= 0)"),
        ({"dead": 4}, "dead: 4 (expected: <= replicas, 3)"),
        ({"failing": 4}, "failing: 4 (expected: <= replicas, 3)"),
        ({"dead": 2, "failing": 2}, "failing: 2 (expected: <= replicas left, 1)"),
        ({"slow": 0.5}, "slow: 0.5 (expected: finite and >= 1)"),
        ({"slow": math.inf}, "slow: inf (expected: finite and >= 1)"),
        (
            {"slow": 10.0, "dead": 2, "failing": 1},
            "slow: 10.0 (expected: 1 where dead and failing are all of 3 replicas)",
        ),
        (
            {"dead": 1, "outage": None},
            "outage: None (expected: a time when replicas are dead, failing or slow)",
        ),
    ],
)
def test_trouble_of_replicas_that_cannot_be_is_refused(changes, said):
    """There cannot be more replicas in trouble than there are."""
    usual = {"replicas": 3, "outage": (1.0, 2.0, 0.2)}
    with pytest.raises(ValueError) as error:
        settings(**usual | changes)

    assert said == str(error.value)


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({"outage": None}, 1.0),
        ({}, 0.2),
        ({"dead": 1}, 0.75),
        ({"failing": 2}, 0.5),
        ({"slow": 10.0}, 0.775),
        ({"dead": 1, "failing": 1, "slow": 2.0}, 0.375),
    ],
)
def test_capacity_is_left_by_those_that_are_well(changes, left):
    """Where some are in trouble, the others have all of theirs."""
    usual = {"replicas": 4, "outage": (1.0, 2.0, 0.2)}

    assert left == pytest.approx(settings(**usual | changes).share_left)


@pytest.mark.parametrize(
    "outage",
    [
        (-1.0, 20.0, 0.2),
        (10.0, 0.0, 0.2),
        (10.0, 20.0, -0.1),
        (10.0, 20.0, 1.1),
        (10.0, 110.1, 0.2),
        (math.nan, 20.0, 0.2),
    ],
)
def test_impossible_outage_is_refused(outage):
    """An outage lies within the duration, and leaves a part of the capacity."""
    with pytest.raises(ValueError, match=r"^outage: .*over within the duration"):
        settings(outage=outage, duration=120.0)


@pytest.mark.parametrize("outage", [None, (0.0, 120.0, 0.0), (119.0, 1.0, 1.0)])
def test_outage_may_take_all_the_time_and_all_of_the_server(outage):
    """There may be no outage, one from beginning to end, or one that leaves nothing."""
    assert outage == settings(outage=outage, duration=120.0).outage


@pytest.mark.parametrize("outage", ["10:20:0.2", (10, 20, 0.2), [10.0, 20.0, 0.2]])
def test_outage_is_text_or_numbers(outage):
    """An outage in any of its forms is the same three numbers."""
    assert (10.0, 20.0, 0.2) == read_outage(outage)


def test_no_outage_is_none():
    """None stays None."""
    assert None is read_outage(None)


@pytest.mark.parametrize(
    "outage", ["10:20", "a:b:c", "", 10, (10, 20), (10**400, 1, 1)]
)
def test_outage_that_cannot_be_read_is_refused(outage):
    """A text that is not three numbers is refused, and the form is said."""
    with pytest.raises(ValueError, match=r"^outage: .*start:length:capacity"):
        read_outage(outage)


@pytest.mark.parametrize(
    "restart",
    [(-1.0, 3.0), (10.0, 0.0), (10.0, 110.1), (math.nan, 3.0), (10.0, math.inf)],
)
def test_impossible_restart_is_refused(restart):
    """A restart lies within the duration."""
    with pytest.raises(ValueError, match=r"^restart: .*over within the duration"):
        settings(restart=restart, duration=120.0)


@pytest.mark.parametrize("restart", ["10:3", (10, 3), [10.0, 3.0]])
def test_restart_is_text_or_numbers(restart):
    """A restart in any of its forms is the same two numbers; there may be none."""
    assert (10.0, 3.0) == read_restart(restart)
    assert read_restart(None) is None


@pytest.mark.parametrize("restart", ["10", "10:3:0.2", "10:soon", "", 10, object()])
def test_what_is_no_restart_is_refused(restart):
    """It says what would be one."""
    with pytest.raises(ValueError, match=r"^restart: .*'start:length' with start >= 0"):
        read_restart(restart)


@pytest.mark.parametrize(
    ("given", "restart", "outage"),
    [
        (UNSET, None, (10.0, 20.0, 0.2)),
        (UNSET, (10.0, 3.0), None),
        ("1:2:0", (10.0, 3.0), (1.0, 2.0, 0.0)),
        (None, None, None),
    ],
)
def test_restart_takes_the_place_of_an_outage_that_is_not_given(given, restart, outage):
    """Of one that is given it does not."""
    assert outage == read_outage(given, restart)


@pytest.mark.parametrize(
    ("changes", "shares"),
    [
        ({}, (1.0, 0.0, 1.0)),
        ({"outage": (2.0, 3.0, 0.2)}, (1.0, 0.0, 0.2)),
        ({"replicas": 4}, (1.0, 0.75, 1.0)),
        ({"replicas": 4, "outage": (2.0, 3.0, 0.2)}, (1.0, 0.15, 0.2)),
        ({"replicas": 4, "outage": (2.0, 3.0, 0.2), "dead": 1}, (1.0, 0.75, 0.75)),
        ({"replicas": 4, "outage": (2.0, 3.0, 0.2), "slow": 4.0}, (1.0, 0.75, 0.8125)),
    ],
)
def test_capacity_is_less_in_a_restart(changes, shares):
    """By what its replica had until then."""
    them = settings(restart=(2.0, 2.0), **changes | {"duration": 9.0})

    assert pytest.approx(shares) == tuple(map(them.share_at, (1.9, 2.0, 4.0)))
