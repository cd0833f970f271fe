"""Chains that ask one member after the other, as ``a | b`` makes them."""

from __future__ import annotations

import warnings
from typing import Protocol, TypeVar


class Member(Protocol):
    """A member of a chain, asked in turn."""

    @property
    def _answers_always(self) -> bool:
        """Whether what stands behind this one is never asked."""
        ...


_Member = TypeVar("_Member", bound=Member)


def chained(
    left: tuple[_Member, ...], right: tuple[_Member, ...]
) -> tuple[_Member, ...]:
    """Return the members of both, and warn where those of *right* are never asked.

    Called by what the method behind ``|`` calls, to whose caller the warning points.
    """
    catch_all = next((member for member in left if member._answers_always), None)
    if right and catch_all is not None:
        warnings.warn(
            f"{' | '.join(map(repr, right))} is never asked: {catch_all!r} in front of"
            " it answers always",
            RuntimeWarning,
            stacklevel=4,
        )
    return (*left, *right)
