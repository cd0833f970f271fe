"""Compute how long to wait before the next attempt, by formulas or by a text."""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .._clock import chance, to_be_pickled
from .._errors import bad_argument, check_unit, is_finite

_MAX_LENGTH = 256
_BASES = ("exponential", "fibonacci", "fixed", "random")
_DELAYS = {"ms": "delays as 200, 200ms or 1.5s", "s": "delays as 1.5, 1.5s or 200ms"}
_FORMS = {
    "exponential": "exponential=initial:max[:multiplier], initial <= max, "
    "multiplier > 1",
    "fibonacci": "fibonacci=initial:max, initial <= max",
    "fixed": "fixed=delay",
    "random": "random=min:max, min <= max",
    "jitter": "jitter=rate in [0, 1], or jitter=lo:hi in [-1, 1], lo <= hi",
    "maxattempts": "maxAttempts=k, an integer >= 1",
}
_KEYS = ", ".join((*_BASES, "jitter", "maxAttempts"))

_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{1,12})?"
_DELAY = rf"({_NUMBER}(?:ms|s)?)"
_RATE = rf"(-?{_NUMBER})"
_VALUES = {
    "exponential": f"{_DELAY}:{_DELAY}(?::{_RATE})?",
    "fibonacci": f"{_DELAY}:{_DELAY}",
    "fixed": _DELAY,
    "random": f"{_DELAY}:{_DELAY}",
    "jitter": f"{_RATE}(?::{_RATE})?",
    "maxattempts": "([0-9]{1,12})",
}


class Backoff(ABC):
    """The delays between the attempts of a call.

    It has no state: the retrying client counts, so one object serves any number of
    calls at once. It goes on counting while the strategy returns the same object;
    with another object, even an equal one, it starts again.

    Use the factories, or subclass it and write :meth:`next_delay`. Delays are in
    seconds; a bad argument is a :class:`ValueError`. A first delay that is a whole
    number above 100 is a :class:`RuntimeWarning`, because milliseconds would be: write
    ``200.0`` if you mean seconds. The formulas are Armeria's.

    >>> class Linear(Backoff):
    ...     def next_delay(self, num_attempts_so_far):
    ...         return 0.5 * num_attempts_so_far
    >>> [Linear().with_max_attempts(4).next_delay(n) for n in (1, 2, 3, 4)]
    [0.5, 1.0, 1.5, None]
    """

    __slots__ = ("__weakref__",)

    @abstractmethod
    def next_delay(self, num_attempts_so_far: int) -> float | None:
        """Return the seconds to wait before the next attempt, or None to stop.

        Args:
            num_attempts_so_far: Attempts made with this backoff in a row, from 1.
        """

    @property
    def _counts(self) -> bool:
        """Whether the delays may depend on the number of attempts so far."""
        return True

    @staticmethod
    def without_delay() -> Backoff:
        """Make a backoff that never waits."""
        return _FixedBackoff(0.0)

    @staticmethod
    def fixed(delay: float) -> Backoff:
        """Make a backoff that always waits for the same time.

        Args:
            delay: Seconds, at least 0.

        >>> Backoff.fixed(0.5)
        Backoff.fixed(0.5)
        """
        _check_first_delay("delay", delay)
        return _FixedBackoff(float(delay))

    @staticmethod
    def random(
        min_delay: float, max_delay: float, *, random: Callable[[], float] = chance
    ) -> Backoff:
        """Make a backoff that waits for a random time, uniform in a range.

        Args:
            min_delay: Shortest delay, at least 0.
            max_delay: Longest delay, at least *min_delay*.
            random: Returns numbers in [0, 1); :func:`random.random` unless given.

        >>> Backoff.random(1, 2, random=lambda: 0.5).next_delay(1)
        1.5
        """
        _check_range("min_delay", min_delay, max_delay)
        random = _checked_random(random)
        return _Random(float(min_delay), float(max_delay), random)

    @staticmethod
    def exponential(
        initial_delay: float = 0.2, max_delay: float = 10.0, multiplier: float = 2.0
    ) -> Backoff:
        """Make a backoff whose delays grow by a factor, up to a limit.

        After attempt *n*: ``min(max_delay, initial_delay * multiplier ** (n - 1))``.
        Add :meth:`with_jitter`, or clients that failed together come back together.

        Args:
            initial_delay: Delay after the first attempt, at least 0.
            max_delay: Longest delay, at least *initial_delay*.
            multiplier: Growth from one delay to the next, above 1.

        >>> [Backoff.exponential(1, 5).next_delay(n) for n in (1, 2, 3, 4)]
        [1.0, 2.0, 4.0, 5.0]
        """
        _check_range("initial_delay", initial_delay, max_delay)
        _check_number("multiplier", multiplier, "> 1", 1 + sys.float_info.epsilon)
        return _Exponential(float(initial_delay), float(max_delay), float(multiplier))

    @staticmethod
    def fibonacci(initial_delay: float = 0.2, max_delay: float = 10.0) -> Backoff:
        """Make a backoff whose delays grow like the Fibonacci numbers, up to a limit.

        Args:
            initial_delay: Delay after the first and after the second attempt.
            max_delay: Longest delay, at least *initial_delay*.

        >>> [Backoff.fibonacci(1, 6).next_delay(n) for n in (1, 2, 3, 4, 5, 6)]
        [1.0, 1.0, 2.0, 3.0, 5.0, 6.0]
        """
        _check_range("initial_delay", initial_delay, max_delay)
        return _Fibonacci(float(initial_delay), float(max_delay))

    @staticmethod
    def of_default() -> Backoff:
        """Return the default backoff, the same object each time.

        >>> Backoff.of_default()
        Backoff.exponential(0.2, 10.0, 2.0).with_jitter(0.2)
        """
        return _DEFAULT

    @classmethod
    def of(cls, spec: str) -> Backoff:
        """Make a backoff from text, for settings files and command lines.

        Options, in any order: ``exponential=initial:max[:multiplier]``,
        ``fibonacci=initial:max``, ``fixed=delay`` or ``random=min:max`` (unless given:
        ``exponential=200:10000``); ``jitter=rate`` or ``jitter=lo:hi`` (unless given:
        0.2; 0 is none); ``maxAttempts=k``. Delays are whole milliseconds (``200``) or
        have a unit (``200ms``, ``1.5s``). Empty text is :meth:`of_default`. The form is
        Armeria's; but a range upside down is refused, which Armeria turns round.

        Args:
            spec: The options, at most 256 characters.

        >>> Backoff.of("fixed=1s, jitter=0, maxAttempts=3")
        Backoff.fixed(1.0).with_max_attempts(3)
        """
        return parse_spec(spec)

    def with_jitter(
        self,
        lo: float,
        hi: float | None = None,
        /,
        *,
        random: Callable[[], float] = chance,
    ) -> Backoff:
        """Scatter the delays, to keep clients from coming back all at once.

        With one rate a delay *d* becomes uniform in ``[d * (1 - rate), d * (1 +
        rate)]``, with two in ``[d * (1 + lo), d * (1 + hi)]``. So it may exceed
        *max_delay*.

        Args:
            lo: A single rate, in [0, 1]; or the lower one of two, in [-1, 1].
            hi: The upper rate, in [*lo*, 1].
            random: Returns numbers in [0, 1); :func:`random.random` unless given.

        >>> Backoff.fixed(10).with_jitter(0.2, random=lambda: 0.0).next_delay(1)
        8.0
        """
        random = _checked_random(random)
        if hi is None:
            _check_number("rate", lo, "in [0, 1]", 0, 1)
            return _Jittered(self, -float(lo), float(lo), random)
        _check_number("lo", lo, "in [-1, 1]", -1, 1)
        _check_number("hi", hi, f">= lo, {lo}, and <= 1", lo, 1)
        return _Jittered(self, float(lo), float(hi), random)

    def with_full_jitter(self, *, random: Callable[[], float] = chance) -> Backoff:
        """Scatter each delay between 0 and the delay, like ``with_jitter(-1, 0)``.

        Args:
            random: Returns numbers in [0, 1); :func:`random.random` unless given.

        >>> Backoff.fixed(10).with_full_jitter(random=lambda: 0.25).next_delay(1)
        2.5
        """
        return self.with_jitter(-1, 0, random=random)

    def with_max_attempts(self, max_attempts: int) -> Backoff:
        """Stop after a number of attempts in a row.

        Args:
            max_attempts: At least 1, the first attempt included: 3 means two retries.
        """
        _check_count("max_attempts", max_attempts)
        return _Limited(self, max_attempts)


@dataclass(frozen=True, slots=True)
class _FixedBackoff(Backoff):
    delay: float

    def next_delay(self, num_attempts_so_far: int) -> float:
        _check_count("num_attempts_so_far", num_attempts_so_far)
        return self.delay

    @property
    def _counts(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"Backoff.fixed({self.delay})"


@dataclass(frozen=True, slots=True)
class _Random(Backoff):
    min_delay: float
    max_delay: float
    chance: Callable[[], float]

    def next_delay(self, num_attempts_so_far: int) -> float:
        _check_count("num_attempts_so_far", num_attempts_so_far)
        return self.min_delay + (self.max_delay - self.min_delay) * self.chance()

    @property
    def _counts(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"Backoff.random({self.min_delay}, {self.max_delay})"


@dataclass(frozen=True, slots=True)
class _Exponential(Backoff):
    initial_delay: float
    max_delay: float
    multiplier: float

    def next_delay(self, num_attempts_so_far: int) -> float:
        _check_count("num_attempts_so_far", num_attempts_so_far)
        try:
            delay = self.initial_delay * self.multiplier ** (num_attempts_so_far - 1)
        except OverflowError:
            delay = self.max_delay if self.initial_delay else 0.0
        return min(delay, self.max_delay)

    @property
    def _counts(self) -> bool:
        return 0 < self.initial_delay < self.max_delay

    def __repr__(self) -> str:
        arguments = f"{self.initial_delay}, {self.max_delay}, {self.multiplier}"
        return f"Backoff.exponential({arguments})"


@dataclass(frozen=True, slots=True)
class _Fibonacci(Backoff):
    initial_delay: float
    max_delay: float

    def next_delay(self, num_attempts_so_far: int) -> float:
        _check_count("num_attempts_so_far", num_attempts_so_far)
        previous, delay = 0.0, self.initial_delay
        for _ in range(num_attempts_so_far - 1):
            if not 0 < delay < self.max_delay:  # from here on nothing changes
                break
            previous, delay = delay, previous + delay
        return min(delay, self.max_delay)

    @property
    def _counts(self) -> bool:
        return 0 < self.initial_delay < self.max_delay

    def __repr__(self) -> str:
        return f"Backoff.fibonacci({self.initial_delay}, {self.max_delay})"


@dataclass(frozen=True, slots=True)
class _Jittered(Backoff):
    delegate: Backoff
    lo: float
    hi: float
    chance: Callable[[], float]

    def next_delay(self, num_attempts_so_far: int) -> float | None:
        _check_count("num_attempts_so_far", num_attempts_so_far)
        delay = self.delegate.next_delay(num_attempts_so_far)
        if delay is None:
            return None
        rate = self.lo + (self.hi - self.lo) * self.chance()
        try:
            jittered = delay * (1 + rate)
        except TypeError:
            expected = "finite and >= 0, or None"
            raise bad_argument("next_delay", delay, expected) from None
        # Jitter must not make a huge delay infinite, nor an infinite one huge.
        return (
            sys.float_info.max if jittered > sys.float_info.max >= delay else jittered
        )

    @property
    def _counts(self) -> bool:
        return self.delegate._counts

    def __repr__(self) -> str:
        rates = f"{self.hi}" if self.lo == -self.hi else f"{self.lo}, {self.hi}"
        return f"{self.delegate!r}.with_jitter({rates})"


@dataclass(frozen=True, slots=True)
class _Limited(Backoff):
    delegate: Backoff
    max_attempts: int

    def next_delay(self, num_attempts_so_far: int) -> float | None:
        _check_count("num_attempts_so_far", num_attempts_so_far)
        if num_attempts_so_far >= self.max_attempts:
            return None
        return self.delegate.next_delay(num_attempts_so_far)

    def __repr__(self) -> str:
        return f"{self.delegate!r}.with_max_attempts({self.max_attempts})"


def parse_spec(spec: str, unit: Literal["ms", "s"] = "ms") -> Backoff:
    """Make the backoff that *spec* describes; see :meth:`Backoff.of` for the form.

    Args:
        spec: The text.
        unit: The unit of a delay that says none. Only whole milliseconds need none.

    Raises:
        ValueError: *spec* cannot be read; the message names the option.
    """
    options = _options(spec)
    if not options:
        return Backoff.of_default()
    options.setdefault("jitter", "jitter=0.2")
    backoff = Backoff.exponential()
    for key in filter(options.get, _FORMS):
        option = options[key]
        try:
            values = _values(key, option.partition("=")[2])
            backoff = _applied(backoff, key, values, unit)
        except ValueError:
            delays = f", {_DELAYS[unit]}" if key in _BASES else ""
            raise bad_argument("spec", option, f"{_FORMS[key]}{delays}") from None
    return backoff


def _options(spec: str) -> dict[str, str]:
    if not isinstance(spec, str):
        raise bad_argument("spec", spec, "a str")
    if len(spec) > _MAX_LENGTH:
        expected = f"at most {_MAX_LENGTH} characters"
        raise bad_argument("spec", f"{spec[:32]}...", expected)
    options: dict[str, str] = {}
    for option in filter(None, map(str.strip, spec.split(","))):
        name = option.partition("=")[0]
        key = name.lower()
        if key not in _FORMS:
            raise bad_argument("spec", option, f"one of {_KEYS}")
        if key in options:
            raise bad_argument("spec", option, f"{name} only once")
        if key in _BASES and not options.keys().isdisjoint(_BASES):
            raise bad_argument("spec", option, f"only one of {', '.join(_BASES)}")
        options[key] = option
    return options


def _values(key: str, text: str) -> list[str]:
    match = re.fullmatch(_VALUES[key], text)
    if match is None:
        raise ValueError
    return [value for value in match.groups() if value is not None]


def _applied(backoff: Backoff, key: str, values: list[str], unit: str) -> Backoff:
    """Return a backoff with an option."""
    if key == "maxattempts":
        return backoff.with_max_attempts(int(values[0]))
    if key == "jitter":
        rates = [float(value) for value in values]
        return backoff.with_jitter(*rates) if any(rates) else backoff
    multiplier = [float(value) for value in values[2:]]
    delays = [_seconds(value, unit) for value in values[:2]]
    made: Backoff = getattr(Backoff, key)(*delays, *multiplier)
    return made


def _seconds(text: str, default_unit: str) -> float:
    number = text.rstrip("ms")
    unit = text.removeprefix(number)
    if not unit and default_unit == "s":
        # As in a program, where a whole number may be meant in milliseconds.
        return int(number) if number.isdigit() else float(number)
    if not unit and not number.isdigit():
        raise ValueError
    return float(number) if unit == "s" else float(number) / 1000


def counts_attempts(backoff: Backoff) -> bool:
    """Say whether the delays depend on the attempts so far, as far as is known."""
    return backoff._counts


def _check_number(
    name: str,
    value: object,
    expected: str,
    low: float,
    high: float = sys.float_info.max,
) -> None:
    """Refuse anything but a finite number from *low* to *high*."""
    if not is_finite(value):
        raise bad_argument(name, value, "a finite number")
    if not low <= value <= high:
        raise bad_argument(name, value, expected)


def _check_first_delay(name: str, seconds: float) -> None:
    """Refuse a negative or infinite delay; warn of one in milliseconds."""
    _check_number(name, seconds, ">= 0", 0)
    check_unit(name, seconds)


def _check_range(lower_name: str, lower: float, max_delay: float) -> None:
    """Refuse delays that are negative, infinite or the wrong way round."""
    _check_first_delay(lower_name, lower)
    _check_number("max_delay", max_delay, f">= {lower_name}, {lower}", lower)


def _check_count(name: str, value: object) -> None:
    """Refuse anything but a positive integer."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise bad_argument(name, value, "an integer >= 1")


def _checked_random(value: Callable[[], float]) -> Callable[[], float]:
    """Refuse what cannot be called; return what gives random numbers when unpickled."""
    if not callable(value):
        raise bad_argument("random", value, "a callable that returns [0, 1)")
    return to_be_pickled(value)


_DEFAULT = Backoff.exponential().with_jitter(0.2)
