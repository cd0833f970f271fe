"""Read the text form of a backoff: ``fixed=200ms,jitter=0.2,maxAttempts=5``.

The caller passes in the :class:`Backoff` class, whose factories check the ranges. So
this module need not import it.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from .._errors import bad_argument

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


def parse_spec(spec: str, factories: Any, unit: Literal["ms", "s"] = "ms") -> Any:
    """Make the backoff that *spec* describes; see :meth:`Backoff.of` for the form.

    Args:
        spec: The text.
        factories: The class of backoffs.
        unit: The unit of a delay that says none. Only whole milliseconds need none.

    Raises:
        ValueError: *spec* cannot be read; the message names the option.
    """
    options = _options(spec)
    if not options:
        return factories.of_default()
    options.setdefault("jitter", "jitter=0.2")
    backoff = factories.exponential()
    for key in filter(options.get, _FORMS):
        option = options[key]
        try:
            values = _values(key, option.partition("=")[2])
            backoff = _applied(backoff, factories, key, values, unit)
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


def _applied(
    backoff: Any, factories: Any, key: str, values: list[str], unit: str
) -> Any:
    """Return a backoff with an option."""
    if key == "maxattempts":
        return backoff.with_max_attempts(int(values[0]))
    if key == "jitter":
        rates = [float(value) for value in values]
        return backoff.with_jitter(*rates) if any(rates) else backoff
    multiplier = [float(value) for value in values[2:]]
    delays = [_seconds(value, unit) for value in values[:2]]
    return getattr(factories, key)(*delays, *multiplier)


def _seconds(text: str, default_unit: str) -> float:
    number = text.rstrip("ms")
    unit = text.removeprefix(number)
    if not unit and default_unit == "s":
        # As in a program, where a whole number may be meant in milliseconds.
        return int(number) if number.isdigit() else float(number)
    if not unit and not number.isdigit():
        raise ValueError
    return float(number) if unit == "s" else float(number) / 1000
