"""A server that is away for a while, as a chain sees it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from chains import now

from aioretry_smithy.testing import ScriptedTransport

if TYPE_CHECKING:
    from aioretry_smithy import ClientRequestContext, HttpRequest


class RestartingServer:
    """Fails until a time, then answers; knows when it was asked.

    Args:
        back_at: When it is there.
        failure: A status, or an exception.
        took: Seconds to a failure.
        answers_in: Seconds to an answer.
    """

    def __init__(
        self,
        back_at: float,
        failure: Any = 503,
        took: float = 0.0,
        answers_in: float = 0.0,
    ) -> None:
        self.back_at = back_at
        self.failure = failure
        self.took = took
        self.answers_in = answers_in
        self.asked: list[float] = []

    def transport(self, most: int = 100) -> ScriptedTransport:
        """Return what asks it so many times at most."""
        return ScriptedTransport([self._answer] * most)

    async def _answer(self, ctx: ClientRequestContext, request: HttpRequest) -> Any:
        self.asked.append(round(now(), 3))
        is_there = now() >= self.back_at
        await asyncio.sleep(self.answers_in if is_there else self.took)
        return 200 if is_there else self.failure
