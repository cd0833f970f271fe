"""Which outcomes are worth another attempt, where the body has to tell."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .._context import ClientRequestContext
    from .backoff import Backoff


class RetryStrategyWithContent(ABC):
    """Decides, after each attempt, by the body of its response too.

    The beginning of each body is waited for, of a success too, and kept in memory; the
    caller still gets the whole body, by ``read()`` and by streaming. Where the status
    and the headers are enough take :class:`RetryStrategy`. After Armeria's
    ``RetryStrategyWithContent``.

    A body that is cut or stalls while it is looked at is a failed attempt: the strategy
    gets the failure as *cause*.

    >>> class RetryWhileLocked(RetryStrategyWithContent):
    ...     backoff = Backoff.of_default()
    ...     max_content_length = 4096
    ...
    ...     def should_retry(self, ctx, cause, content):
    ...         return self.backoff if content and b"locked" in content else None
    """

    max_content_length: int = 1024 * 1024
    """Bytes of each body to look at, >= 1."""

    @abstractmethod
    def should_retry(
        self,
        ctx: ClientRequestContext,
        cause: Exception | None,
        content: bytes | None,
    ) -> Backoff | Awaitable[Backoff | None] | None:
        """Say whether to retry; plain or ``async``.

        Asked after every attempt, the successful ones too. What it raises goes to the
        caller.

        Args:
            ctx: The attempt; ``ctx.log`` has the status and the headers of its response
                and ``ctx.request`` what was sent.
            cause: What the attempt failed with, or None when there is a response. Ask
                :func:`is_timeout` and :func:`is_unprocessed` instead of testing types.
            content: The first ``max_content_length`` bytes of the body, decoded as
                aiohttp decodes it by its ``Content-Encoding``; empty where there is no
                body. None when there is a *cause*.

        Returns:
            The backoff to wait by, the same object each time, or None to stop with this
            outcome.
        """
