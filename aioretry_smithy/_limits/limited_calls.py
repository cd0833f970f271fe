"""Get a permit of a limit for each request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from .._call.client import DecoratingClient, HttpClient
from .._clock import loop_time
from .._errors import bad_argument, is_finite

if TYPE_CHECKING:
    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest

_PermitT = TypeVar("_PermitT")

_AT_ONCE: Final = 1e-3
"""Seconds that a refusal without any wait may take."""


class LimitedCalls(DecoratingClient[HttpClient], ABC, Generic[_PermitT]):
    """Sends requests that have a permit of their limit."""

    _serves = "sessions"

    async def _permit(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> _PermitT | None:
        """Return the permit that the short lane has, or take one now."""
        first = (ctx.parent or ctx)._first_attempt
        if first is not None:
            permit: _PermitT | None = first.permits[self]
            return permit
        try:
            return await self._take(ctx, request)
        except BaseException as cause:
            ctx.log._record_failure(cause)
            raise

    @abstractmethod
    async def _take(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> _PermitT | None:
        """Wait for a permit for *request*; return None where it has no limit."""


def note_queue(ctx: ClientRequestContext, started: float) -> None:
    """Note that a call stood in a queue since then, unless it was sent off at once.

    Retrying clients further out go by that.
    """
    if loop_time() - started > _AT_ONCE:
        ctx.log._call.has_queued = True


def check_timeout(seconds: float | None) -> None:
    """Refuse a bad time for which a request may wait."""
    if seconds is not None and not (is_finite(seconds) and seconds >= 0):
        raise bad_argument("timeout", seconds, "finite and >= 0, or None")
