"""Limiters of retries that tests listen to."""

from __future__ import annotations

import asyncio
from typing import Any

from aioretry_smithy import RetryLimiter


class Recording(RetryLimiter):
    """Gives so many permits, at once or after a while, and notes what it heard."""

    def __init__(self, permits: int = 99, takes: float = 0.0) -> None:
        self.permits = permits
        self.takes = takes
        self.heard: list[str] = []
        self.causes: list[Exception | None] = []

    def acquire(self, ctx: Any, cause: Any) -> Any:
        self.heard.append(f"acquire {ctx.attempt} {type(cause).__name__}")
        self.causes.append(cause)
        self.permits -= 1
        return self.slowly() if self.takes else self.permits >= 0

    async def slowly(self) -> bool:
        await asyncio.sleep(self.takes)
        return self.permits >= 0

    def release(self, ctx: Any) -> Any:
        self.heard.append(f"release {ctx.attempt}")

    def on_retry_end(self, ctx: Any) -> Any:
        self.heard.append(f"end {ctx.attempt}")

    def on_success(self, ctx: Any) -> Any:
        self.heard.append(f"success {ctx.attempt}")

    def on_failure(self, ctx: Any, cause: Any) -> Any:
        self.heard.append(f"failure {ctx.attempt} {type(cause).__name__}")


class Unhurried(RetryLimiter):
    """Gives each permit at once, and takes its time over what it is told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def acquire(self, ctx: Any, cause: Any) -> bool:
        return True

    async def release(self, ctx: Any) -> None:
        self.heard.append("release")
        await asyncio.sleep(1.0)

    async def on_retry_end(self, ctx: Any) -> None:
        self.heard.append("end")
        await asyncio.sleep(1.0)
