import asyncio
from collections.abc import Sequence
from itertools import repeat

import aiohttp

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    ClientRequestContext,
    DecoratingClient,
    Decorator,
    FailFastError,
    HttpClient,
    HttpRequest,
    RetryingClient,
    RetryRule,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
)
from aioretry_smithy.testing import ScriptedTransport

HOSTS = ("a.example.com", "b.example.com")


class HostPicker(DecoratingClient):
    """Send each attempt of a call to the next host, and each call to the next first."""

    def __init__(self, delegate: HttpClient, hosts: Sequence[str]) -> None:
        super().__init__(delegate)
        self.hosts = hosts
        self.calls = 0

    @classmethod
    def new_decorator(cls, *hosts: str) -> Decorator:
        return lambda delegate: cls(delegate, hosts)

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        if "first host" not in ctx.attributes:  # which all attempts share
            ctx.attributes["first host"] = self.calls
            self.calls += 1
        turn = ctx.attributes["first host"] + (ctx.attempt or 1) - 1
        url = request.url.with_host(self.hosts[turn % len(self.hosts)])
        return await self.delegate.execute(ctx, request.replace(url=url))


# As many attempts as there are hosts: when all circuits are open, the call ends.
at_once = Backoff.without_delay().with_max_attempts(len(HOSTS))
next_host = RetryRule(exceptions=[FailFastError], backoff=at_once)


def new_breaker(key: str) -> CircuitBreaker:
    return CircuitBreaker(key, minimum_request_threshold=2)


def answer(ctx: ClientRequestContext, request: HttpRequest) -> int:
    return 503 if request.url.host == "a.example.com" else 200


async def main() -> None:
    transport = ScriptedTransport(repeat(answer))
    builder = (
        SessionBuilder("https://orders.example.com")
        .decorator(transport)
        .decorator(CircuitBreakerClient.new_per_host_decorator(new_breaker))
        .decorator(HostPicker.new_decorator(*HOSTS))
        .decorator(RetryingClient.new_decorator(next_host | RetryStrategy.failsafe()))
    )
    async with builder.build() as session:
        with capture_logs() as logs:
            for call in range(1, 6):
                sent_before = len(transport.requests)
                await session.get("/orders")
                sent = transport.requests[sent_before:]
                print(call, *(f"{request.url.host}" for request in sent))
        print(logs[-1].render())


asyncio.run(main())
