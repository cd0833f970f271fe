"""Never run: decorated functions and their decorators, for the type checkers."""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, assert_type

import aiohttp
from prometheus_client import CollectorRegistry

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerRpcClient,
    ClientRequestContext,
    DecoratingClient,
    HttpClient,
    HttpRequest,
    LoggingClient,
    LoggingRpcClient,
    RequestLog,
    RetryConfig,
    RetryConfigMapping,
    RetryingClient,
    RetryingRpcClient,
    RetryRule,
    RetryStrategyWithContent,
    RpcClient,
    RpcRequest,
    SessionBuilder,
    capture_logs,
    client_decorator,
    opentelemetry,
    prometheus,
    rpc,
)


class Report:
    """The result of a function."""

    def is_stale(self) -> bool:
        """Say whether to ask again."""
        return False


class UntilFresh(RetryStrategyWithContent):
    """A strategy for what a function returns."""

    def should_retry(
        self,
        ctx: ClientRequestContext,
        cause: Exception | None,
        content: Report | None,
    ) -> None:
        assert_type(content, Report | None)


class Tagging(DecoratingClient[RpcClient]):
    """A decorator of functions, written as a class."""

    async def execute(self, ctx: ClientRequestContext, request: RpcRequest) -> Any:
        assert_type(request.args, tuple[Any, ...])
        return await self.delegate.execute(ctx, request.replace(name="tagged"))


class Signing(DecoratingClient):
    """A decorator of sessions: the kind need not be said."""

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        assert_type(self.delegate, HttpClient)
        response = await self.delegate.execute(ctx, request)
        assert_type(response, aiohttp.ClientResponse)
        return response


@client_decorator
async def timed(
    delegate: RpcClient, ctx: ClientRequestContext, request: RpcRequest
) -> Any:
    """Be a decorator of functions, written as a function."""
    return await delegate.execute(ctx, request)


@client_decorator
async def signed(
    delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    """Be a decorator of sessions, written as a function."""
    return await delegate.execute(ctx, request)


def kept(ctx: ClientRequestContext, request: RpcRequest) -> Report:
    """Answer in place of a function."""
    return Report()


@rpc(
    CircuitBreakerRpcClient.new_decorator(CircuitBreaker("reports"), fallback=kept),
    Tagging,
    timed,
    RetryingRpcClient.new_decorator(
        RetryRule(exceptions=[KeyError]), 3, 2.0, use_retry_after=False
    ),
    LoggingRpcClient.new_decorator(),
    response_timeout=10.0,
    name="reports.fetch",
    idempotent=True,
)
async def fetch(day: str, *, page: int = 1) -> Report:
    """Fetch a report."""
    return Report()


class Reports:
    """A class with decorated methods."""

    @rpc()
    async def read(self, day: str) -> Report:
        """Read one."""
        return Report()

    @staticmethod
    @rpc()
    async def parse(text: str) -> Report:
        """Parse one."""
        return Report()


async def call() -> None:
    """Call what is decorated: it has its own signature."""
    assert_type(await fetch("monday", page=2), Report)
    assert_type(await Reports().read("monday"), Report)
    assert_type(await Reports.parse("text"), Report)
    one: Callable[[str], Coroutine[Any, Any, Report]] = Reports().read
    assert_type(await one("monday"), Report)
    await fetch(7)  # type: ignore[arg-type]
    await fetch("monday", pages=2)  # type: ignore[call-arg]
    await Reports().read()  # type: ignore[call-arg]


def strategies() -> None:
    """Take the strategies and the settings that a session takes."""
    RetryingRpcClient.new_decorator(UntilFresh() | RetryRule(exceptions=[KeyError]))
    RetryingRpcClient.new_decorator(RetryConfig.no_retry())
    RetryingRpcClient.new_mapped_decorator(
        RetryConfigMapping.of(
            lambda ctx, request: "all", lambda key: RetryConfig.no_retry()
        )
    )
    RetryingRpcClient.new_decorator(
        UntilFresh(),
        buffer_response=True,  # type: ignore[call-arg]
    )


def watched() -> None:
    """Trace and count functions, and read what was called inside."""
    traced = opentelemetry.TracingRpcClient.new_decorator()
    counted = prometheus.MetricsRpcClient.new_decorator(CollectorRegistry())
    assert_type(rpc(traced, counted)(load), Callable[[], Coroutine[Any, Any, Report]])
    with capture_logs() as logs:
        assert_type(logs[0].children[0].calls, tuple[RequestLog, ...])
        assert_type(logs[0].dropped_calls, int)
    rpc(opentelemetry.TracingClient.new_decorator())  # type: ignore[arg-type]
    rpc(prometheus.MetricsClient.new_decorator())  # type: ignore[arg-type]
    SessionBuilder().decorator(traced)  # type: ignore[arg-type]
    SessionBuilder().decorator(counted)  # type: ignore[arg-type]


async def load() -> Report:
    """Be decorated."""
    return Report()


def wrong_kind() -> None:
    """Decorators of sessions are refused around functions, and the reverse."""
    logged, retried = LoggingClient.new_decorator(), RetryingClient.new_decorator
    rpc(logged)  # type: ignore[arg-type]
    rpc(retried(UntilFresh()))  # type: ignore[arg-type]
    rpc(signed)  # type: ignore[arg-type]
    rpc(Signing)  # type: ignore[arg-type]
    builder = SessionBuilder().decorator(Signing).decorator(signed)
    builder.decorator(timed)  # type: ignore[arg-type]
    builder.decorator(Tagging)  # type: ignore[arg-type]
    rpc()(kept)  # type: ignore[arg-type]
