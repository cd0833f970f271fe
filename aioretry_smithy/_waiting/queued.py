"""Say what all that queue calls say of a wait in their queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from .._clock import loop_time
from .._failures.failure import judge

if TYPE_CHECKING:
    from .._context.context import ClientRequestContext

_E = TypeVar("_E", bound=Exception)

_AT_ONCE: Final = 1e-3
"""Seconds that a refusal without any wait may take."""


def note_queue(ctx: ClientRequestContext, started: float) -> None:
    """Note that a call stood in a queue since then, unless it was sent off at once.

    Retrying clients further out go by that.
    """
    if loop_time() - started > _AT_ONCE:
        ctx.call.has_queued = True


def unsent(error: _E) -> _E:
    """Mark a deadline that ended a wait, so that no server is blamed."""
    judge(error).queue = "limit"
    return error
