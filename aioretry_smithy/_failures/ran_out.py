"""Tell failures that a limit of time brought about."""

from __future__ import annotations

from typing import Final

from .safety import is_timeout, peel, was_queued

_SIBLING_TIMED_OUT: Final = "_aioretry_smithy_sibling_timed_out"


def ran_out(cause: BaseException | None) -> bool:
    """Say whether a limit of time ended a request, or another for the same answer.

    Also one in the queue of a connection pool or of a limit.
    """
    return is_timeout(cause) or was_queued(cause) or sibling_timed_out(cause)


def mark_sibling_timed_out(cause: BaseException) -> None:
    """Note that the deadline of the call cut another request for the same answer."""
    vars(peel(cause))[_SIBLING_TIMED_OUT] = True


def sibling_timed_out(cause: BaseException | None) -> bool:
    """Say whether :func:`mark_sibling_timed_out` was called for an exception."""
    return cause is not None and _SIBLING_TIMED_OUT in vars(peel(cause))
