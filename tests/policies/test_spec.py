"""The text form of a backoff."""

from __future__ import annotations

import pytest
from chains import bad_argument

from aioretry_smithy._policies.backoff import Backoff

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
def test_spec_stands_for_the_factory_calls(spec: str, expected: Backoff) -> None:
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
def test_bare_number_is_milliseconds_and_units_say_otherwise(
    delay: str, expected: float
) -> None:
    """``200`` is ``200ms``; seconds and decimals have a unit."""
    assert Backoff.fixed(expected) == Backoff.of(f"fixed={delay},jitter=0")


@pytest.mark.parametrize("jitter", ["0", "0.0", "0:0", "-0"])
def test_jitter_of_zero_is_none(jitter: str) -> None:
    """Without jitter the factory's own backoff is what is returned."""
    assert Backoff.exponential() == Backoff.of(f"jitter={jitter}")


@pytest.mark.parametrize("spec", ["", " ", ",", " , ,"])
def test_empty_spec_is_the_default_itself(spec: str) -> None:
    """No option at all is the one default object, not an equal one."""
    assert Backoff.of_default() is Backoff.of(spec)


def test_keys_ignore_case_and_options_are_trimmed() -> None:
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
def test_bad_option_is_named_with_what_was_expected(
    spec: str, option: str, expected: str
) -> None:
    """The message is one line: the option at fault and the form that it should have."""
    with bad_argument("spec", option, expected):
        Backoff.of(spec)


@pytest.mark.timeout(2)
@pytest.mark.parametrize(
    "text", ["9", "fixed=9", ",", "jitter=-", "\N{ZERO WIDTH SPACE}"]
)
def test_endless_spec_is_refused_at_once(text: str) -> None:
    """A text that nobody wrote by hand is neither read nor repeated in the message."""
    with pytest.raises(ValueError, match=r"^spec: .*\.\.\.") as caught:
        Backoff.of(text * 10_000)

    shown = (text * 32)[:32]
    assert f"spec: {shown + '...'!r} (expected: at most 256 characters)" == str(
        caught.value
    )


def test_spec_may_be_as_long_as_it_says() -> None:
    """The limit itself is still read."""
    spec = "fixed=1,jitter=0".ljust(256)

    assert Backoff.fixed(0.001) == Backoff.of(spec)
    with pytest.raises(ValueError, match="at most 256"):
        Backoff.of(f"{spec} ")


@pytest.mark.parametrize("spec", [None, 5, b"fixed=1", ["fixed=1"]])
def test_spec_that_is_no_text_is_refused(spec: object) -> None:
    """Only a str is read; bytes and numbers are bad arguments."""
    with bad_argument("spec", spec, "a str"):
        Backoff.of(spec)
