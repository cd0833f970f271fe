"""Processes that open their circuits together, in one process."""

from __future__ import annotations

import asyncio
import contextlib

from aioretry_smithy import CircuitBreaker
from aioretry_smithy.redis import SharedCircuitBreakers


class Process:
    """One process, with a circuit breaker of the name that all have."""

    def __init__(self, redis, share=0.5, name="orders", listeners=(), **settings):
        self.shared = SharedCircuitBreakers(redis, random=lambda: share)
        self.breaker = CircuitBreaker(
            name,
            minimum_request_threshold=2,
            listeners=[self.shared, *listeners],
            **settings,
        )

    async def __aenter__(self):
        await self.shared.__aenter__()
        await asyncio.sleep(0.01)
        return self

    async def __aexit__(self, *error):
        await self.shared.__aexit__(*error)

    def report(self, *outcomes):
        """Count a success or a failure for each."""
        for outcome in outcomes:
            permit = self.breaker.try_request()
            if outcome:
                self.breaker.on_success(permit)
            else:
                self.breaker.on_failure(permit)

    @property
    def state(self):
        return self.breaker.state


@contextlib.asynccontextmanager
async def processes(*all_of_them):
    async with contextlib.AsyncExitStack() as stack:
        for process in all_of_them:
            await stack.enter_async_context(process)
        yield all_of_them


@contextlib.asynccontextmanager
async def two_open(redis, *shares, **settings):
    """Run two processes; the circuit of the first has opened, and tells the other."""
    async with processes(*(Process(redis, share, **settings) for share in shares)) as (
        one,
        other,
    ):
        other.report(False)
        one.report(False, False)
        yield one, other


async def heard():
    """Wait until everybody has heard what was told."""
    await asyncio.sleep(0.01)
