"""The factories of :class:`Backoff` and what they combine."""

import copy
import math
import sys

import pytest
from chains import bad_argument, raises_exactly

from aioretry_smithy._policies.backoff import Backoff

MIDDLE = 0.5
TOP = math.nextafter(1.0, 0.0)
"""The largest number that a source of chance may return."""


def middle():
    return MIDDLE


def top():
    return TOP


class Scripted(Backoff):
    """A user's backoff, with an ``__init__`` of its own and no checks."""

    def __init__(self, *delays):
        self.delays = delays

    def __repr__(self):
        return f"Scripted{self.delays}"

    def next_delay(self, num_attempts_so_far):
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
def test_delay_follows_the_formula(backoff, expected):
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
def test_jitter_moves_the_delay_within_its_range(jittered, expected):
    """Jitter is ``d * (1 + lo + (hi - lo) * random())``."""
    assert expected == jittered.next_delay(1)


def test_jitter_of_a_huge_delay_stays_finite():
    """Jitter never turns a finite delay into infinity."""
    backoff = Backoff.fixed(sys.float_info.max).with_jitter(1, random=top)

    assert sys.float_info.max == backoff.next_delay(1)


class Wrong(Backoff):
    def __init__(self, answer):
        self.answer = answer

    def next_delay(self, num_attempts_so_far):
        return self.answer


def test_jitter_hides_no_infinite_delay():
    """It is the mistake of a user's backoff, and is refused as without jitter."""
    assert math.inf == Wrong(math.inf).with_jitter(0.2).next_delay(1)


def test_jitter_refuses_what_is_no_number():
    """Python would only say that it cannot be multiplied."""
    with bad_argument("next_delay", "1", "finite and >= 0, or None"):
        Wrong("1").with_jitter(0.2).next_delay(1)


def test_max_attempts_counts_the_first_attempt():
    """``k`` attempts mean ``k - 1`` delays, then None for ever."""
    backoff = Backoff.fixed(1).with_max_attempts(3)

    assert [1.0, 1.0, None, None] == [backoff.next_delay(n) for n in (1, 2, 3, 4)]
    assert Backoff.fixed(1).with_max_attempts(1).next_delay(1) is None


def test_wrappers_pass_stop_through():
    """None of a user's backoff stays None under jitter and attempt limits."""
    backoff = Scripted(1.0, None)

    assert backoff.with_jitter(0.2).next_delay(2) is None
    assert backoff.with_full_jitter().next_delay(2) is None
    assert backoff.with_max_attempts(9).next_delay(2) is None


def test_default_is_one_object():
    """``of_default()`` is the same object each time: counters go by identity."""
    assert Backoff.of_default() is Backoff.of_default()
    assert Backoff.exponential(0.2, 10, 2).with_jitter(0.2) == Backoff.of_default()


@pytest.mark.parametrize("backoff", BUILT_IN, ids=repr)
@pytest.mark.parametrize("n", [0, -1, True, 1.0, math.nan, "1", None])
def test_attempts_below_one_are_refused(backoff, n):
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
def test_many_attempts_do_not_overflow(backoff, expected, n):
    """However many attempts there were, the delay is the cap."""
    assert expected == backoff.next_delay(n)


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, -math.inf, "1", None, True])
def test_delay_that_is_no_delay_is_refused(bad):
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
def test_longest_delay_is_finite(bad):
    """No factory takes a limit that is not a finite number."""
    for factory in (Backoff.random, Backoff.exponential, Backoff.fibonacci):
        with pytest.raises(ValueError, match=r"^max_delay: .* \(expected: a finite nu"):
            factory(0.5, bad)


def test_range_upside_down_is_refused():
    """The message shows both ends as they were given."""
    cases = {"min_delay": Backoff.random, "initial_delay": Backoff.exponential}
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
def test_multiplier_must_grow(bad, expected):
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
def test_jitter_rate_out_of_range_is_refused(rates, expected):
    """One rate is in [0, 1]; of two each is in [-1, 1], in order."""
    with raises_exactly(expected):
        Backoff.fixed(1).with_jitter(*rates)


@pytest.mark.parametrize("bad", [0, -1, 1.5, 2.0, True, "3", None])
def test_max_attempts_must_be_a_positive_integer(bad):
    """A limit below the first attempt, or one that is no integer, is refused."""
    with bad_argument("max_attempts", bad, "an integer >= 1"):
        Backoff.fixed(1).with_max_attempts(bad)


def test_chance_that_cannot_be_called_is_refused():
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


def test_backoffs_are_values():
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


def test_subclass_without_next_delay_cannot_be_made():
    """Forgetting the one method is found out when the object is made."""

    class Forgetful(Backoff):
        pass

    with pytest.raises(TypeError, match="next_delay"):
        Forgetful()


DELAYS = "delays as 200, 200ms or 1.5s"
EXPONENTIAL = (
    f"exponential=initial:max[:multiplier], initial <= max, multiplier > 1, {DELAYS}"
)
FIBONACCI = f"fibonacci=initial:max, initial <= max, {DELAYS}"
FIXED = f"fixed=delay, {DELAYS}"
RANDOM = f"random=min:max, min <= max, {DELAYS}"
JITTER = "jitter=rate in [0, 1], or jitter=lo:hi in [-1, 1], lo <= hi"
MAX_ATTEMPTS = "maxAttempts=k, an integer >= 1"
KEYS = "one of exponential, fibonacci, fixed, random, jitter, maxAttempts"
BASES = "only one of exponential, fibonacci, fixed, random"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            "exponential=200:10000:2.0,jitter=0.2,maxAttempts=5",
            Backoff.exponential(0.2, 10, 2).with_jitter(0.2).with_max_attempts(5),
        ),
        ("exponential=100:2000:3", Backoff.exponential(0.1, 2, 3).with_jitter(0.2)),
        ("exponential=200:10000", Backoff.of_default()),
        ("fibonacci=200:10000", Backoff.fibonacci(0.2, 10).with_jitter(0.2)),
        ("fixed=500", Backoff.fixed(0.5).with_jitter(0.2)),
        ("random=200:400", Backoff.random(0.2, 0.4).with_jitter(0.2)),
        ("jitter=0.3", Backoff.exponential().with_jitter(0.3)),
        ("jitter=-0.1:0.3", Backoff.exponential().with_jitter(-0.1, 0.3)),
        ("jitter=-1:0", Backoff.exponential().with_full_jitter()),
        ("maxAttempts=3", Backoff.of_default().with_max_attempts(3)),
    ],
)
def test_spec_stands_for_the_factory_calls(spec, expected):
    """Each option is its factory call; jitter is 0.2 unless given."""
    assert expected == Backoff.of(spec)


@pytest.mark.parametrize(
    ("delay", "expected"),
    [
        ("200", 0.2),
        ("200ms", 0.2),
        ("0", 0.0),
        ("1", 0.001),
        ("10s", 10.0),
        ("1.5s", 1.5),
        ("1.5ms", 0.0015),
        ("007", 0.007),
    ],
)
def test_bare_number_is_milliseconds_and_units_say_otherwise(delay, expected):
    """``200`` is ``200ms``; seconds and decimals have a unit."""
    assert Backoff.fixed(expected) == Backoff.of(f"fixed={delay},jitter=0")


@pytest.mark.parametrize("jitter", ["0", "0.0", "0:0", "-0"])
def test_jitter_of_zero_is_none(jitter):
    """Without jitter the factory's own backoff is what is returned."""
    assert Backoff.exponential() == Backoff.of(f"jitter={jitter}")


@pytest.mark.parametrize("spec", ["", " ", ",", " , ,"])
def test_empty_spec_is_the_default_itself(spec):
    """No option at all is the one default object, not an equal one."""
    assert Backoff.of_default() is Backoff.of(spec)


def test_keys_ignore_case_and_options_are_trimmed():
    """Empty options are skipped, and the order of the options does not matter."""
    spec = ",, MAXATTEMPTS=3 ,\tJitter=0.5, Fixed=1s ,"

    assert Backoff.fixed(1).with_jitter(0.5).with_max_attempts(3) == Backoff.of(spec)


@pytest.mark.parametrize(
    ("spec", "option", "expected"),
    [
        ("exponentail=200:10000", "exponentail=200:10000", KEYS),
        ("fixed=1, 200", "200", KEYS),
        ("=5", "=5", KEYS),
        ("jitter =0.2", "jitter =0.2", KEYS),
        ("jitter=0.1,jitter=0.1", "jitter=0.1", "jitter only once"),
        ("maxAttempts=1,maxattempts=2", "maxattempts=2", "maxattempts only once"),
        ("fixed=1,fixed=1", "fixed=1", "fixed only once"),
        ("fixed=1,random=1:2", "random=1:2", BASES),
        ("exponential=200", "exponential=200", EXPONENTIAL),
        ("exponential=1:2:3:4", "exponential=1:2:3:4", EXPONENTIAL),
        ("exponential=10000:200", "exponential=10000:200", EXPONENTIAL),
        ("exponential=200:10000:1", "exponential=200:10000:1", EXPONENTIAL),
        ("exponential=200:10000:-2", "exponential=200:10000:-2", EXPONENTIAL),
        ("exponential", "exponential", EXPONENTIAL),
        ("fibonacci=200", "fibonacci=200", FIBONACCI),
        ("fibonacci=10s:200", "fibonacci=10s:200", FIBONACCI),
        ("random=2:1", "random=2:1", RANDOM),
        ("random=1", "random=1", RANDOM),
        ("fixed=", "fixed=", FIXED),
        ("fixed=1:2", "fixed=1:2", FIXED),
        ("fixed=1=2", "fixed=1=2", FIXED),
        ("fixed=1.5", "fixed=1.5", FIXED),
        ("fixed=1m", "fixed=1m", FIXED),
        ("fixed=1 s", "fixed=1 s", FIXED),
        ("fixed=-1", "fixed=-1", FIXED),
        ("fixed=+1", "fixed=+1", FIXED),
        ("fixed=nan", "fixed=nan", FIXED),
        ("fixed=1e999", "fixed=1e999", FIXED),
        ("fixed=1_000", "fixed=1_000", FIXED),
        ("fixed=٣", "fixed=٣", FIXED),
        ("fixed=" + "9" * 200, "fixed=" + "9" * 200, FIXED),
        ("jitter=1.5", "jitter=1.5", JITTER),
        ("jitter=-0.1", "jitter=-0.1", JITTER),
        ("jitter=0.3:0.2", "jitter=0.3:0.2", JITTER),
        ("jitter=0:0:0", "jitter=0:0:0", JITTER),
        ("jitter=nan", "jitter=nan", JITTER),
        ("jitter=", "jitter=", JITTER),
        ("maxAttempts=0", "maxAttempts=0", MAX_ATTEMPTS),
        ("maxAttempts=-1", "maxAttempts=-1", MAX_ATTEMPTS),
        ("maxAttempts=2.5", "maxAttempts=2.5", MAX_ATTEMPTS),
        ("maxAttempts=1:2", "maxAttempts=1:2", MAX_ATTEMPTS),
        ("maxAttempts=٣", "maxAttempts=٣", MAX_ATTEMPTS),
    ],
)
def test_bad_option_is_named_with_what_was_expected(spec, option, expected):
    """The message is one line: the option at fault and the form that it should have."""
    with bad_argument("spec", option, expected):
        Backoff.of(spec)


@pytest.mark.timeout(2)
@pytest.mark.parametrize(
    "text", ["9", "fixed=9", ",", "jitter=-", "\N{ZERO WIDTH SPACE}"]
)
def test_endless_spec_is_refused_at_once(text):
    """A text that nobody wrote by hand is neither read nor repeated in the message."""
    with pytest.raises(ValueError, match=r"^spec: .*\.\.\.") as caught:
        Backoff.of(text * 10_000)

    shown = (text * 32)[:32]
    assert f"spec: {shown + '...'!r} (expected: at most 256 characters)" == str(
        caught.value
    )


def test_spec_may_be_as_long_as_it_says():
    """The limit itself is still read."""
    spec = "fixed=1,jitter=0".ljust(256)

    assert Backoff.fixed(0.001) == Backoff.of(spec)
    with pytest.raises(ValueError, match="at most 256"):
        Backoff.of(f"{spec} ")


@pytest.mark.parametrize("spec", [None, 5, b"fixed=1", ["fixed=1"]])
def test_spec_that_is_no_text_is_refused(spec):
    """Only a str is read; bytes and numbers are bad arguments."""
    with bad_argument("spec", spec, "a str"):
        Backoff.of(spec)
