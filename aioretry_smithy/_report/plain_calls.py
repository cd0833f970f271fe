"""Find calls that made one request and succeeded, and count those alike together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .evidence import is_near
from .histogram import bucket_of
from .outcome import host_of
from .seen_call import fills
from .spending import ANSWER, plain_spending
from .times import Times
from .units import key_of
from .values import number, text

if TYPE_CHECKING:
    from .answers import Line
    from .seen_call import SeenCall
    from .units import By


class Plain(NamedTuple):
    """A call that made one request, which succeeded and was all that it did."""

    values: Line
    duration: float
    key: tuple[str, str, str | None]
    """The group, the host and the endpoint that the call shares with others."""


def plain_call(values: Line, by: By) -> Plain | None:
    """Return a call if it is plain.

    Args:
        values: Its line.
        by: What groups have in common.
    """
    duration = number(values, "duration")
    attempt = _only_attempt(values)
    if duration is None or attempt is None or not fills(attempt, duration):
        return None
    limit = number(attempt, "response_timeout")
    if limit is not None and is_near(limit, attempt):
        return None
    group, host = key_of(values, by), host_of(attempt)
    if group is None or host is None:
        return None
    return Plain(values, duration, (group, host, text(attempt, "endpoint")))


def _only_attempt(values: Line) -> Line | None:
    """Return the attempt of a call, itself without any, if both are a success."""
    if values.get("is_success") is not True or values.get("delay") is not None:
        return None
    children = values.get("children")
    if not children:
        return values
    if not isinstance(children, list) or len(children) != 1:
        return None
    child = children[0]
    if not isinstance(child, dict) or child.get("is_success") is not True:
        return None
    return None if child.get("superseded") or child.get("is_hedge") else child


class Alike:
    """Plain calls that differ in nothing but their times.

    Args:
        call: The first of them.
    """

    __slots__ = ("call", "times", "weight")

    def __init__(self, call: SeenCall) -> None:
        self.call = call
        self.times = Times()
        self.weight = 0.0

    def add(self, plain: Plain, weight: float) -> SeenCall:
        """Add a call and return it as it is seen: the first, with its duration."""
        call, duration = self.call, plain.duration
        call.duration = duration
        call.bucket = bucket_of(duration)
        end = max(duration, number(plain.values, "total_duration") or 0.0)
        self.times.add(call, plain_spending(ANSWER, duration, end), weight)
        self.weight += weight
        return call
