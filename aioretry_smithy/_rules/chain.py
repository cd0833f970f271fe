"""Join the members of a chain, as ``a | b`` does."""

from __future__ import annotations

import warnings
from typing import Protocol, TypeVar


class Member(Protocol):
    """A member of a chain, asked in turn."""

    @property
    def _answers_always(self) -> bool:
        """Whether members behind this one are never asked."""
        ...


_Member = TypeVar("_Member", bound=Member)


def chained(
    left: tuple[_Member, ...], right: tuple[_Member, ...]
) -> tuple[_Member, ...]:
    """Return the members of both, and warn if those of *right* are never asked.

    The warning points at the line with the ``|``: two frames above the caller.
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
