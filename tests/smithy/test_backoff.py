"""Smithy's backoff strategies."""

import math
import random
from collections import Counter

import pytest

from aioretry_smithy.smithy import (
    ExponentialBackoffJitterType,
    ExponentialRetryBackoffStrategy,
)

DEFAULT, NONE, FULL, DECORRELATED = ExponentialBackoffJitterType
LARGEST_CHANCE = math.nextafter(1.0, 0.0)


def chances(*values):
    """Make a source of chance that gives one value after the other."""
    return iter(values).__next__


def test_defaults_are_those_of_smithy_python():
    """Equal jitter, from 25 ms to 20 s."""
    backoff = ExponentialRetryBackoffStrategy()

    assert 0.025 == backoff.backoff_scale_value
    assert 20.0 == backoff.max_backoff
    assert DEFAULT is backoff.jitter_type
    assert 0.0 <= backoff.random() < 1.0


@pytest.mark.parametrize("jitter_type", ExponentialBackoffJitterType)
def test_no_wait_before_the_initial_attempt(jitter_type):
    """The delay for attempt 0 is 0.0, and no chance is taken for it."""
    backoff = ExponentialRetryBackoffStrategy(jitter_type=jitter_type, random=chances())
    delay = backoff.compute_next_backoff_delay(0)

    assert 0.0 == delay
    assert isinstance(delay, float)


@pytest.mark.parametrize(
    ("jitter_type", "lowest", "highest"),
    [(DEFAULT, 4.0, 8.0), (NONE, 8.0, 8.0), (FULL, 0.0, 8.0)],
)
def test_jitter_scatters_over_its_range(jitter_type, lowest, highest):
    """The least chance gives the shortest delay, the largest the longest."""
    delays = [
        ExponentialRetryBackoffStrategy(
            backoff_scale_value=2, jitter_type=jitter_type, random=lambda r=r: r
        ).compute_next_backoff_delay(3)
        for r in (0.0, LARGEST_CHANCE)
    ]

    assert [lowest, pytest.approx(highest)] == delays


def test_full_jitter_is_uniform():
    """Each second below the limit is as likely as any other, give or take a fifth."""
    backoff = ExponentialRetryBackoffStrategy(
        backoff_scale_value=1.0, jitter_type=FULL, random=random.Random(4).random
    )
    seconds = Counter(
        math.floor(backoff.compute_next_backoff_delay(10)) for _ in range(10_000)
    )

    assert {*range(20)} == {*seconds}
    assert all(400 <= count <= 600 for count in seconds.values())


def test_decorrelated_delay_takes_a_chance_for_each_step():
    """Each step starts from the delay before it and draws anew."""
    backoff = ExponentialRetryBackoffStrategy(
        backoff_scale_value=1,
        max_backoff=20,
        jitter_type=DECORRELATED,
        random=chances(0.5, 0.25, 0.5),
    )

    # 1 + 3 * 0.5 * 1 = 2.5, then 1 + 3 * 0.25 * 2.5 = 2.875, then:
    assert 5.3125 == backoff.compute_next_backoff_delay(3)


def test_decorrelated_delays_do_not_depend_on_earlier_calls():
    """Calls that share the object do not disturb one another."""
    backoff = ExponentialRetryBackoffStrategy(
        backoff_scale_value=2, jitter_type=DECORRELATED, random=lambda: 0.5
    )
    backoff.compute_next_backoff_delay(5)
    delays = [backoff.compute_next_backoff_delay(n) for n in (1, 2, 1)]

    assert [5.0, 9.5, 5.0] == delays


def test_decorrelated_chain_has_an_end():
    """A late attempt does not draw thousands of chances."""
    drawn = []

    def draw():
        drawn.append(None)
        return 0.5

    backoff = ExponentialRetryBackoffStrategy(jitter_type=DECORRELATED, random=draw)
    delay = backoff.compute_next_backoff_delay(5000)

    assert 20.0 == delay
    assert 128 == len(drawn)


@pytest.mark.parametrize("jitter_type", ExponentialBackoffJitterType)
@pytest.mark.parametrize("retry_attempt", [1024, 1025, 1026, 5000, 10**30])
def test_late_attempts_do_not_overflow(jitter_type, retry_attempt):
    """Doubling ends at the limit, not at the largest number."""
    backoff = ExponentialRetryBackoffStrategy(
        jitter_type=jitter_type, random=lambda: LARGEST_CHANCE
    )

    assert 20.0 == pytest.approx(backoff.compute_next_backoff_delay(retry_attempt))


def test_equal_settings_make_equal_strategies():
    """Settings can be compared, and read."""
    one, other = (ExponentialRetryBackoffStrategy(max_backoff=5) for _ in range(2))
    text = (
        "ExponentialRetryBackoffStrategy(backoff_scale_value=0.025, max_backoff=5, "
        "jitter_type=<ExponentialBackoffJitterType.DEFAULT: 1>)"
    )

    assert one == other
    assert one != ExponentialRetryBackoffStrategy()
    assert text == repr(one)
