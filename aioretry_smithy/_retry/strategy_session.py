"""One call whose retries a :class:`RetryStrategy` decides about."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, cast

from .. import _content
from .._errors import bad_argument
from .backoff import Backoff
from .content_strategy import RetryStrategyWithContent
from .session import RetrySession

if TYPE_CHECKING:
    import aiohttp

    from .._context import ClientRequestContext
    from .._request import HttpRequest
    from .config import RetryConfig


class StrategySession(RetrySession):
    """Asks for a backoff, and counts on it for as long as it is the same object."""

    __slots__ = ("_answer", "_backoff", "_count")

    def __init__(
        self, config: RetryConfig, ctx: ClientRequestContext, request: HttpRequest
    ) -> None:
        super().__init__(config, ctx, request)
        self._answer: Backoff | None = None
        self._backoff: Backoff | None = None
        self._count = 0

    async def ask(self) -> bool:
        """Ask the strategy; a backoff means that another attempt is wanted."""
        reads_bodies = self._config.reads_bodies
        content = await self._read(self._peek) if reads_bodies else None
        if self._was_cut():
            return False
        strategy: Any = self._config.strategy
        if reads_bodies and isinstance(strategy, RetryStrategyWithContent):
            answer = strategy.should_retry(self.attempt, self.cause, content)
        else:
            answer = strategy.should_retry(self.attempt, self.cause)
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer is not None and not isinstance(answer, Backoff):
            raise bad_argument("should_retry", answer, "a Backoff or None")
        self._answer = answer
        return answer is not None

    async def next_delay(self) -> float | None:
        """Ask the backoff; one that is not the last one's object counts from 1."""
        backoff = cast("Backoff", self._answer)
        if backoff is not self._backoff:
            if self._backoff is not None and backoff == self._backoff:
                _warn_about_equal_backoff(backoff)
            self._backoff = backoff
            self._count = 0
        self._count += 1
        return backoff.next_delay(self._count)

    async def _peek(self, response: aiohttp.ClientResponse) -> bytes | None:
        strategy = self._config.strategy
        if not isinstance(strategy, RetryStrategyWithContent):
            return None
        return await _content.peek(response, strategy.max_content_length)


def _warn_about_equal_backoff(backoff: Backoff) -> None:
    # Python's own filter keeps this to once for this line and text.
    warnings.warn(
        f"the retry strategy returned a new {backoff!r} that equals the last one; its"
        " count starts again each time, so it never grows. Make it once and keep it.",
        RuntimeWarning,
        stacklevel=2,
    )
