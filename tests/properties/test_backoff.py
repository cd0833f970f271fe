"""Rules that every backoff keeps, with any settings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aioretry_smithy import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable

# Whole numbers are as good as others here.
pytestmark = pytest.mark.filterwarnings("ignore:.*units are seconds:RuntimeWarning")

LARGEST_CHANCE = math.nextafter(1.0, 0.0)

delays = st.floats(0, 1e9) | st.floats(0, 1.7e308) | st.integers(0, 10**6)
counts = st.integers(1, 100) | st.integers(1, 10**6)
chances = st.floats(0, LARGEST_CHANCE) | st.just(LARGEST_CHANCE)
rates = st.floats(-1, 1)
ranges = st.tuples(delays, delays).map(sorted)
multipliers = st.floats(1, 1e300, exclude_min=True)


@st.composite
def backoffs(draw: st.DrawFn) -> tuple[Backoff, float]:
    """A backoff without jitter, and its longest delay."""
    low, high = draw(ranges)
    chance = draw(chances)
    return draw(
        st.sampled_from(
            [
                (Backoff.without_delay(), 0.0),
                (Backoff.fixed(high), high),
                (Backoff.random(low, high, random=lambda: chance), high),
                (Backoff.exponential(low, high, draw(multipliers)), high),
                (Backoff.fibonacci(low, high), high),
            ]
        )
    )


WRAPPERS: list[Callable[[Backoff], Backoff]] = [
    lambda backoff: backoff.with_jitter(0.2),
    lambda backoff: backoff.with_jitter(-0.5, 1),
    lambda backoff: backoff.with_full_jitter(),
    lambda backoff: backoff.with_max_attempts(50),
    lambda backoff: backoff.with_max_attempts(10**7),
]


@given(backoffs(), counts)
def test_delay_is_never_longer_than_its_limit(
    made: tuple[Backoff, float], n: int
) -> None:
    """However many attempts there were, a delay is a float from 0 to the limit."""
    backoff, longest = made
    delay = backoff.next_delay(n)

    assert isinstance(delay, float)
    assert 0 <= delay <= longest


@given(ranges, multipliers, st.integers(1, 3000))
def test_growing_delays_never_shrink(
    ends: list[float], multiplier: float, n: int
) -> None:
    """More attempts never mean a shorter wait; the first wait is the initial one."""
    for backoff in (Backoff.exponential(*ends, multiplier), Backoff.fibonacci(*ends)):
        assert ends[0] == backoff.next_delay(1)
        assert backoff.next_delay(n) <= backoff.next_delay(n + 1)


@given(ranges, chances)
@example([0.1, 0.3], LARGEST_CHANCE)
def test_random_delay_is_within_its_range(ends: list[float], chance: float) -> None:
    """Both ends hold, to the last bit."""
    delay = Backoff.random(*ends, random=lambda: chance).next_delay(1)

    assert ends[0] <= delay <= ends[1]


@given(st.floats(0, 1e300), st.tuples(rates, rates).map(sorted), chances)
@example(1.0, [0.1, 0.3], LARGEST_CHANCE)
def test_jittered_delay_is_within_its_range(
    delay: float, ends: list[float], chance: float
) -> None:
    """Jitter stays in ``[d * (1 + lo), d * (1 + hi)]``, to the last bit."""
    lo, hi = ends
    jittered = Backoff.fixed(delay).with_jitter(lo, hi, random=lambda: chance)

    assert delay * (1 + lo) <= jittered.next_delay(1) <= delay * (1 + hi)


@given(st.floats(0, 1e300), st.floats(0, 1), chances)
def test_one_rate_is_the_same_rate_both_ways(
    delay: float, rate: float, chance: float
) -> None:
    """``with_jitter(rate)`` is ``with_jitter(-rate, rate)``."""

    def random() -> float:
        return chance

    one = Backoff.fixed(delay).with_jitter(rate, random=random)

    assert Backoff.fixed(delay).with_jitter(-rate, rate, random=random) == one


@given(backoffs(), st.lists(st.sampled_from(WRAPPERS), max_size=6), counts)
def test_wrappers_compose(
    made: tuple[Backoff, float],
    wrappers: list[Callable[[Backoff], Backoff]],
    n: int,
) -> None:
    """Any pile of wrappers gives a finite delay, or stops at its lowest limit."""
    backoff = made[0]
    for wrap in wrappers:
        backoff = wrap(backoff)
    delay = backoff.next_delay(n)
    stops = ".with_max_attempts(50)" in repr(backoff) and n >= 50

    assert stops == (delay is None)
    assert delay is None or (math.isfinite(delay) and delay >= 0)
    with pytest.raises(ValueError, match="num_attempts_so_far"):
        backoff.next_delay(1 - n)


@given(backoffs(), st.lists(st.sampled_from(WRAPPERS), max_size=3), counts, counts)
def test_two_calls_that_share_a_backoff_do_not_meet(
    made: tuple[Backoff, float],
    wrappers: list[Callable[[Backoff], Backoff]],
    mine: int,
    theirs: int,
) -> None:
    """A call changes nothing for another: there is no state."""
    backoff = made[0]
    for wrap in wrappers:
        backoff = wrap(backoff)
    before = repr(backoff), hash(backoff)
    backoff.next_delay(mine)
    backoff.next_delay(theirs)

    assert before == (repr(backoff), hash(backoff))
    assert made[0].next_delay(mine) == made[0].next_delay(mine)


words = st.sampled_from(
    [
        *("exponential", "fibonacci", "fixed", "random", "jitter", "maxAttempts"),
        *("=", "=", ":", ":", ",", ",", "-", ".", "0", "1", "200", "10s", "5ms", "0.2"),
        *("nan", "1e999", " ", "٣", "²", "İ", "\x00", "\ud800"),
    ]
)


@given(st.text() | st.lists(words, max_size=30).map("".join))
def test_any_text_is_a_backoff_or_a_value_error(spec: str) -> None:
    """Hostile text gives one line that names the argument, and no other exception."""
    try:
        backoff = Backoff.of(spec)
    except ValueError as error:
        message = str(error)
        assert message.startswith("spec: ")
        assert message.endswith(")")
        assert len(message.splitlines()) == 1
    else:
        delay = backoff.next_delay(1)
        assert delay is None or (math.isfinite(delay) and delay >= 0)


numbers = st.integers(0, 10**6)


@given(
    numbers,
    numbers,
    st.sampled_from(["", "ms", "s"]),
    st.integers(0, 100),
    st.integers(1, 100),
)
def test_every_well_formed_spec_is_read(
    initial: int, more: int, unit: str, percent: int, limit: int
) -> None:
    """A spec that the grammar allows is the same as the factory calls."""
    scale = 1 if unit == "s" else 1000
    spec = (
        f"exponential={initial}{unit}:{initial + more}{unit}:1.5,"
        f"jitter=-{percent / 100}:{percent / 100},maxAttempts={limit}"
    )
    backoff = Backoff.exponential(initial / scale, (initial + more) / scale, 1.5)
    if percent:
        backoff = backoff.with_jitter(percent / 100)

    assert backoff.with_max_attempts(limit) == Backoff.of(spec)
