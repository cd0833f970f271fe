"""Tell failures that a limit of time brought about."""

from __future__ import annotations

from typing import Final

from .safety import is_timeout, peel, was_queued

_CUT_BESIDE: Final = "_aioretry_smithy_cut_beside"


def ran_out(cause: BaseException | None) -> bool:
    """Say whether a limit of time ended a request, or another for the same answer.

    Also one in the queue of a connection pool or of a limit.
    """
    return is_timeout(cause) or was_queued(cause) or was_cut_beside(cause)


def mark_cut_beside(cause: BaseException) -> None:
    """Note that the deadline of the call cut another request for the same answer."""
    vars(peel(cause))[_CUT_BESIDE] = True


def was_cut_beside(cause: BaseException | None) -> bool:
    """Say whether :func:`mark_cut_beside` was called for an exception."""
    return cause is not None and _CUT_BESIDE in vars(peel(cause))
