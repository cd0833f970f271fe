"""Check the arguments of backoffs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .._chance import to_be_pickled
from .._errors import bad_argument, is_finite
from .._meant import check_unit

if TYPE_CHECKING:
    from collections.abc import Callable


def check_number(
    name: str, value: Any, expected: str, low: float, high: float = sys.float_info.max
) -> None:
    """Refuse what is no finite number from *low* to *high*."""
    if not is_finite(value):
        raise bad_argument(name, value, "a finite number")
    if not low <= value <= high:
        raise bad_argument(name, value, expected)


def check_first_delay(name: str, seconds: float) -> None:
    """Refuse a negative or infinite delay; warn of one in milliseconds."""
    check_number(name, seconds, ">= 0", 0)
    check_unit(name, seconds)


def check_range(lower_name: str, lower: float, max_delay: float) -> None:
    """Refuse delays that are negative, infinite or the wrong way round."""
    check_first_delay(lower_name, lower)
    check_number("max_delay", max_delay, f">= {lower_name}, {lower}", lower)


def check_count(name: str, value: object) -> None:
    """Refuse what is no positive integer."""
    if type(value) is int and value > 0:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise bad_argument(name, value, "an integer >= 1")


def checked_random(value: Callable[[], float]) -> Callable[[], float]:
    """Refuse what cannot be called; return what gives random numbers when unpickled."""
    if not callable(value):
        raise bad_argument("random", value, "a callable that returns [0, 1)")
    return to_be_pickled(value)
