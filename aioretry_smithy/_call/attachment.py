"""Attach a call to its outcome, and find it there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._failures.kept_cause import LOG_KEY

if TYPE_CHECKING:
    from .call import Call


def attach(call: Call, source: object) -> None:
    """Let :meth:`RequestLog.of` find the log of *call* from *source*."""
    if isinstance(source, BaseException):
        # An exception of the user's own may refuse to be written on.
        vars(source)[LOG_KEY] = call
    else:
        # Quicker, since Python then needs no dictionary for the attributes.
        setattr(source, LOG_KEY, call)


def attached_to(source: object) -> Any:
    """Return the call attached to *source*, or None."""
    return getattr(source, "__dict__", {}).get(LOG_KEY)
