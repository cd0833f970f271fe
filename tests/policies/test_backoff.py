"""The factories of :class:`Backoff` and what they combine."""

from __future__ import annotations

import copy
import math
import sys

import pytest
from chains import bad_argument, raises_exactly

from aioretry_smithy._policies.backoff import Backoff

MIDDLE = 0.5
TOP = math.nextafter(1.0, 0.0)
"""The largest number that a source of chance may return."""


def middle() -> float:
    return MIDDLE


def top() -> float:
    return TOP


class Scripted(Backoff):
    """A user's backoff, with an ``__init__`` of its own and no checks."""

    def __init__(self, *delays: float | None) -> None:
        self.delays = delays

    def __repr__(self) -> str:
        return f"Scripted{self.delays}"

    def next_delay(self, num_attempts_so_far: int) -> float | None:
        return self.delays[num_attempts_so_far - 1]


BUILT_IN = [
    Backoff.without_delay(),
    Backoff.fixed(1),
    Backoff.random(1, 2),
    Backoff.exponential(),
    Backoff.fibonacci(),
    Backoff.of_default(),
    Scripted(1.0).with_jitter(0.2),
    Scripted(1.0).with_full_jitter(),
    Scripted(1.0).with_max_attempts(3),
]


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [
        (Backoff.without_delay(), [0.0, 0.0, 0.0]),
        (Backoff.fixed(3), [3.0, 3.0, 3.0]),
        (Backoff.fixed(0), [0.0, 0.0, 0.0]),
        (Backoff.random(1, 3, random=middle), [2.0, 2.0, 2.0]),
        (Backoff.random(1, 3, random=lambda: 0.0), [1.0, 1.0, 1.0]),
        (Backoff.random(2, 2, random=middle), [2.0, 2.0, 2.0]),
        (Backoff.exponential(), [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]),
        (Backoff.exponential(1, 10, 3), [1.0, 3.0, 9.0, 10.0]),
        (Backoff.exponential(1, 8, 1.5), [1.0, 1.5, 2.25, 3.375, 5.0625, 7.59375, 8.0]),
        (Backoff.exponential(5, 5), [5.0, 5.0]),
        (Backoff.exponential(0, 10), [0.0, 0.0, 0.0]),
        (Backoff.fibonacci(), [0.2 * k for k in (1, 1, 2, 3, 5, 8, 13, 21, 34, 50)]),
        (Backoff.fibonacci(1, 100), [1.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0]),
        (Backoff.fibonacci(5, 5), [5.0, 5.0]),
        (Backoff.fibonacci(0, 10), [0.0, 0.0, 0.0]),
    ],
)
def test_delay_follows_the_formula(backoff: Backoff, expected: list[float]) -> None:
    """Each factory gives the delays of its formula, counted from 1 and capped."""
    actual = [backoff.next_delay(n) for n in range(1, len(expected) + 1)]

    assert expected == actual
    assert all(isinstance(delay, float) for delay in actual)


@pytest.mark.parametrize(
    ("jittered", "expected"),
    [
        (Backoff.fixed(10).with_jitter(0.2, random=lambda: 0.0), 8.0),
        (Backoff.fixed(10).with_jitter(0.2, random=lambda: 0.25), 9.0),
        (Backoff.fixed(10).with_jitter(0.2, random=middle), 10.0),
        (Backoff.fixed(10).with_jitter(0.2, random=lambda: 0.75), 11.0),
        (Backoff.fixed(10).with_jitter(0, random=lambda: 0.9), 10.0),
        (Backoff.fixed(10).with_jitter(1, random=lambda: 0.0), 0.0),
        (Backoff.fixed(10).with_jitter(1, random=lambda: 0.75), 15.0),
        (Backoff.fixed(10).with_jitter(0, 0.5, random=lambda: 0.0), 10.0),
        (Backoff.fixed(10).with_jitter(0, 0.5, random=middle), 12.5),
        (Backoff.fixed(10).with_jitter(-0.5, -0.25, random=lambda: 0.0), 5.0),
        (Backoff.fixed(10).with_jitter(-0.5, -0.25, random=middle), 6.25),
        (Backoff.fixed(10).with_jitter(-1, -1, random=middle), 0.0),
        (Backoff.fixed(10).with_full_jitter(random=lambda: 0.0), 0.0),
        (Backoff.fixed(10).with_full_jitter(random=lambda: 0.25), 2.5),
        (Backoff.without_delay().with_jitter(1, random=middle), 0.0),
    ],
)
def test_jitter_moves_the_delay_within_its_range(
    jittered: Backoff, expected: float
) -> None:
    """Jitter is ``d * (1 + lo + (hi - lo) * random())``."""
    assert expected == jittered.next_delay(1)


def test_jitter_is_applied_after_the_cap() -> None:
    """A capped delay is scattered around the cap, so it may be above it."""
    backoff = Backoff.exponential(1, 10).with_jitter(0.5, random=lambda: 0.75)

    assert 12.5 == backoff.next_delay(100)


def test_full_jitter_equals_the_two_rates_it_stands_for() -> None:
    """``with_full_jitter()`` is ``with_jitter(-1, 0)``."""
    backoff = Backoff.fixed(1)

    assert backoff.with_jitter(-1, 0) == backoff.with_full_jitter()


def test_jitter_of_a_huge_delay_stays_finite() -> None:
    """Jitter never turns a finite delay into infinity."""
    backoff = Backoff.fixed(sys.float_info.max).with_jitter(1, random=top)

    assert sys.float_info.max == backoff.next_delay(1)


def test_rounding_never_carries_a_delay_past_its_range() -> None:
    """The largest chance that there is stays within the upper end."""
    backoff = Backoff.random(0.1, 0.3, random=top)
    jittered = Backoff.fixed(1).with_jitter(0.1, 0.3, random=top)

    assert 0.3 >= backoff.next_delay(1)
    assert 1.3 >= jittered.next_delay(1)


def test_max_attempts_counts_the_first_attempt() -> None:
    """``k`` attempts mean ``k - 1`` delays, then None for ever."""
    backoff = Backoff.fixed(1).with_max_attempts(3)

    assert [1.0, 1.0, None, None] == [backoff.next_delay(n) for n in (1, 2, 3, 4)]
    assert Backoff.fixed(1).with_max_attempts(1).next_delay(1) is None


def test_wrappers_pass_stop_through() -> None:
    """None of a user's backoff stays None under jitter and attempt limits."""
    backoff = Scripted(1.0, None)

    assert backoff.with_jitter(0.2).next_delay(2) is None
    assert backoff.with_full_jitter().next_delay(2) is None
    assert backoff.with_max_attempts(9).next_delay(2) is None


def test_order_of_wrappers_does_not_matter() -> None:
    """Jitter around a limit and a limit around jitter give the same delays."""
    backoff = Backoff.exponential(1, 8)
    inner = backoff.with_jitter(0.2, random=top).with_max_attempts(3)
    outer = backoff.with_max_attempts(3).with_jitter(0.2, random=top)

    for n in range(1, 5):
        assert inner.next_delay(n) == outer.next_delay(n)


def test_chance_is_asked_once_for_each_delay() -> None:
    """Every call draws anew; a shared object does not repeat itself."""
    draws = iter([0.0, 0.5])
    backoff = Backoff.fixed(10).with_jitter(0.2, random=lambda: next(draws))

    assert [8.0, 10.0] == [backoff.next_delay(1), backoff.next_delay(1)]


def test_growing_backoffs_start_alike_unless_told() -> None:
    """Without arguments both wait from 0.2 to 10 seconds."""
    exponential, fibonacci = Backoff.exponential(), Backoff.fibonacci()

    assert Backoff.exponential(0.2, 10.0, 2.0) == exponential
    assert Backoff.fibonacci(0.2, 10.0) == fibonacci


def test_default_is_one_object() -> None:
    """``of_default()`` is the same object each time: counters go by identity."""
    assert Backoff.of_default() is Backoff.of_default()
    assert Backoff.exponential(0.2, 10, 2).with_jitter(0.2) == Backoff.of_default()


@pytest.mark.parametrize("backoff", BUILT_IN, ids=repr)
@pytest.mark.parametrize("n", [0, -1, True, 1.0, math.nan, "1", None])
def test_attempts_below_one_are_refused(backoff: Backoff, n: object) -> None:
    """The count is an integer from 1, also through wrappers of an unchecked backoff."""
    with bad_argument("num_attempts_so_far", n, "an integer >= 1"):
        backoff.next_delay(n)


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [
        (Backoff.exponential(), 10.0),
        (Backoff.exponential(0, 10), 0.0),
        (Backoff.exponential(5e-324, 1e308, 1.1), 1e308),
        (Backoff.exponential(1e-300, 1e300, 1e300), 1e300),
        (Backoff.fibonacci(), 10.0),
        (Backoff.fibonacci(0, 10), 0.0),
        (Backoff.fibonacci(5e-324, 1e308), 1e308),
    ],
)
@pytest.mark.parametrize("n", [10**4, 10**6, 10**400])
def test_many_attempts_do_not_overflow(
    backoff: Backoff, expected: float, n: int
) -> None:
    """However many attempts there were, the delay is the cap."""
    assert expected == backoff.next_delay(n)


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, -math.inf, "1", None, True])
def test_delay_that_is_no_delay_is_refused(bad: object) -> None:
    """Every delay is a finite number from 0, and the message names the argument."""
    expected = ">= 0" if bad == -0.1 else "a finite number"
    makers = {
        "delay": lambda: Backoff.fixed(bad),
        "min_delay": lambda: Backoff.random(bad, 2),
        "initial_delay": lambda: Backoff.exponential(bad, 2),
    }
    for name, make in makers.items():
        with bad_argument(name, bad, expected):
            make()


@pytest.mark.parametrize("bad", [math.nan, math.inf, "1", None, True, 10**400])
def test_longest_delay_is_finite(bad: object) -> None:
    """No factory takes a limit that is not a finite number."""
    for factory in (Backoff.random, Backoff.exponential, Backoff.fibonacci):
        with pytest.raises(ValueError, match=r"^max_delay: .* \(expected: a finite nu"):
            factory(0.5, bad)


def test_range_upside_down_is_refused() -> None:
    """The message shows both ends as they were given."""
    cases = {
        "min_delay": Backoff.random,
        "initial_delay": Backoff.exponential,
    }
    for name, factory in cases.items():
        with raises_exactly(f"max_delay: 1 (expected: >= {name}, 2)"):
            factory(2, 1)

    with pytest.raises(ValueError, match=r"max_delay: 1 \(expected: >= initial_del"):
        Backoff.fibonacci(2, 1)


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (1, "> 1"),
        (0.5, "> 1"),
        (-2, "> 1"),
        (math.inf, "a finite number"),
        (math.nan, "a finite number"),
        ("2", "a finite number"),
    ],
)
def test_multiplier_must_grow(bad: object, expected: str) -> None:
    """A multiplier of 1 or less would be no growth."""
    with bad_argument("multiplier", bad, expected):
        Backoff.exponential(1, 2, bad)


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ((-0.1,), "rate: -0.1 (expected: in [0, 1])"),
        ((1.1,), "rate: 1.1 (expected: in [0, 1])"),
        ((math.nan,), "rate: nan (expected: a finite number)"),
        (("0.2",), "rate: '0.2' (expected: a finite number)"),
        ((-1.1, 0), "lo: -1.1 (expected: in [-1, 1])"),
        ((1.5, 1.6), "lo: 1.5 (expected: in [-1, 1])"),
        ((0, 1.1), "hi: 1.1 (expected: >= lo, 0, and <= 1)"),
        ((0, "1"), "hi: '1' (expected: a finite number)"),
        ((0.3, 0.2), "hi: 0.2 (expected: >= lo, 0.3, and <= 1)"),
    ],
)
def test_jitter_rate_out_of_range_is_refused(
    rates: tuple[float, float], expected: str
) -> None:
    """One rate is in [0, 1]; of two each is in [-1, 1], in order."""
    with raises_exactly(expected):
        Backoff.fixed(1).with_jitter(*rates)


@pytest.mark.parametrize("bad", [0, -1, 1.5, 2.0, True, "3", None])
def test_max_attempts_must_be_a_positive_integer(bad: object) -> None:
    """A limit below the first attempt, or one that is no integer, is refused."""
    with bad_argument("max_attempts", bad, "an integer >= 1"):
        Backoff.fixed(1).with_max_attempts(bad)


def test_chance_that_cannot_be_called_is_refused() -> None:
    """A number where a source of chance belongs is found out at once."""
    backoff = Backoff.fixed(1)
    makers = [
        lambda: Backoff.random(1, 2, random=0.5),
        lambda: backoff.with_jitter(0.2, random=0.5),
        lambda: backoff.with_full_jitter(random=0.5),
    ]
    for make in makers:
        with pytest.raises(ValueError, match=r"^random: 0\.5 \(expected: a callable"):
            make()


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [
        (Backoff.without_delay(), "Backoff.fixed(0.0)"),
        (Backoff.fixed(3), "Backoff.fixed(3.0)"),
        (Backoff.random(1, 2), "Backoff.random(1.0, 2.0)"),
        (Backoff.exponential(), "Backoff.exponential(0.2, 10.0, 2.0)"),
        (Backoff.fibonacci(), "Backoff.fibonacci(0.2, 10.0)"),
        (Backoff.fixed(3).with_jitter(0.2), "Backoff.fixed(3.0).with_jitter(0.2)"),
        (Backoff.fixed(3).with_jitter(0), "Backoff.fixed(3.0).with_jitter(0.0)"),
        (
            Backoff.fixed(3).with_jitter(-0.1, 0.3),
            "Backoff.fixed(3.0).with_jitter(-0.1, 0.3)",
        ),
        (
            Backoff.fixed(3).with_full_jitter(),
            "Backoff.fixed(3.0).with_jitter(-1.0, 0.0)",
        ),
        (
            Backoff.fixed(3).with_max_attempts(5),
            "Backoff.fixed(3.0).with_max_attempts(5)",
        ),
    ],
)
def test_repr_is_the_call_that_makes_it(backoff: Backoff, expected: str) -> None:
    """The shown text can be pasted back and gives an equal backoff."""
    assert expected == repr(backoff)
    assert backoff == eval(repr(backoff))


def test_backoffs_are_values() -> None:
    """Equal settings are equal, differing ones are not, and nothing can be changed."""
    backoff = Backoff.exponential(1, 2).with_jitter(0.2)

    assert Backoff.exponential(1.0, 2.0).with_jitter(0.2) == backoff
    assert hash(Backoff.exponential(1.0, 2.0).with_jitter(0.2)) == hash(backoff)
    assert backoff.with_max_attempts(2) != backoff.with_max_attempts(3)
    assert Backoff.random(1, 2) != Backoff.fibonacci(1, 2)
    assert Backoff.random(1, 2, random=top) != Backoff.random(1, 2, random=middle)
    assert backoff == copy.deepcopy(backoff)
    with pytest.raises(AttributeError):
        backoff.lo = 0.0


def test_subclass_without_next_delay_cannot_be_made() -> None:
    """Forgetting the one method is found out when the object is made."""

    class Forgetful(Backoff):
        pass

    with pytest.raises(TypeError, match="next_delay"):
        Forgetful()
