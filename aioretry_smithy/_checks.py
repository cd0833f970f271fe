"""Refuse bad arguments, with the error that says what was expected."""

from __future__ import annotations

from ._errors import bad_argument, call_it, is_finite, is_plain_function


def boolean(name: str, value: object) -> None:
    """Refuse anything but True and False."""
    if not isinstance(value, bool):
        raise bad_argument(name, value, "True or False")


def integer(name: str, value: object, low: int, *, or_none: bool = False) -> None:
    """Refuse anything but an int that is *low* or more; a bool is none."""
    fits = type(value) is int and value >= low
    _refuse_unless(name, value, f"an int >= {low}", fits=fits, or_none=or_none)


def positive(name: str, value: object, *, or_none: bool = False) -> None:
    """Refuse anything but a finite number above 0."""
    fits = is_finite(value) and value > 0
    _refuse_unless(name, value, "finite and > 0", fits=fits, or_none=or_none)


def not_negative(name: str, value: object, *, or_none: bool = False) -> None:
    """Refuse anything but a finite number that is 0 or more."""
    fits = is_finite(value) and value >= 0
    _refuse_unless(name, value, "finite and >= 0", fits=fits, or_none=or_none)


def function(name: str, value: object, arguments: str) -> None:
    """Refuse what is neither None nor a plain function."""
    fits, expected = is_plain_function(value), f"a plain function of {arguments}"
    _refuse_unless(name, value, expected, fits=fits, or_none=True)


def factory(value: object) -> None:
    """Refuse what cannot make the value of a key; a coroutine would be no value."""
    if not is_plain_function(value):
        later = ", without async" if callable(value) else ""
        raise bad_argument("factory", value, f"a callable that takes the key{later}")


def kind(
    name: str, value: object, kind: type[object], *, or_none: bool = False
) -> None:
    """Refuse anything but an instance of a class; hint at a call that was forgotten."""
    if not isinstance(value, kind) and not (or_none and value is None):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        expected = f"{article} {kind.__name__}{', or None' if or_none else ''}"
        raise bad_argument(name, value, f"{expected}{call_it(value, kind)}")


def _refuse_unless(
    name: str, value: object, expected: str, *, fits: bool, or_none: bool
) -> None:
    """Refuse a value that does not fit; None may stand for no value."""
    if not fits and not (or_none and value is None):
        raise bad_argument(name, value, f"{expected}{', or None' if or_none else ''}")
