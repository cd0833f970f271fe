"""Never run: what users write, for the type checkers to agree with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import repeat
from pathlib import Path
from typing import assert_type

import aiohttp
from opentelemetry import metrics, propagate, trace
from prometheus_client import CollectorRegistry
from yarl import URL

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerListener,
    CircuitBreakerRpcClient,
    CircuitBreakerRule,
    CircuitBreakerRuleWithContent,
    CircuitBreakerStrategy,
    CircuitPermit,
    CircuitState,
    ClientRequestContext,
    ConcurrencyLimit,
    ConnectionTimings,
    ContentPreviewingClient,
    DecoratingClient,
    Decorator,
    HttpClient,
    HttpRequest,
    LogFormatter,
    LoggingClient,
    RequestLog,
    RetryBudget,
    RetryConfig,
    RetryConfigMapping,
    RetryDecision,
    RetryingClient,
    RetryingRpcClient,
    RetryLimiter,
    RetryListener,
    RetryRule,
    RetryRuleWithContent,
    RetryStopReason,
    RetryStrategy,
    RetryStrategyWithContent,
    SessionBuilder,
    capture_logs,
    client_decorator,
    decorate,
    is_timeout,
    new_response,
    opentelemetry,
    prometheus,
    undecorate,
    unwrap,
)
from aioretry_smithy.testing import (
    ScriptedAnswer,
    ScriptedTransport,
    ask,
    patch_aioresponses,
)


class Plain(RetryStrategy):
    """A strategy that answers at once."""

    def __init__(self, backoff: Backoff) -> None:
        self.backoff = backoff

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> Backoff | None:
        return self.backoff if is_timeout(cause) else None


class Awaiting(RetryStrategy):
    """A strategy that takes its time."""

    async def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> Backoff | None:
        return None


class Looking(RetryStrategyWithContent):
    """A strategy that looks at bodies."""

    max_content_length = 4096

    def __init__(self, backoff: Backoff) -> None:
        self.backoff = backoff

    def should_retry(
        self,
        ctx: ClientRequestContext,
        cause: Exception | None,
        content: bytes | None,
    ) -> Backoff | None:
        return self.backoff if content is not None and b"busy" in content else None


class LookingLater(RetryStrategyWithContent):
    """A strategy that looks at bodies and takes its time."""

    async def should_retry(
        self,
        ctx: ClientRequestContext,
        cause: Exception | None,
        content: bytes | None,
    ) -> Backoff | None:
        return None


class Deciding(RetryStrategy):
    """A strategy that forbids."""

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> Backoff | RetryDecision | None:
        if ctx.request.method == "POST":
            return RetryDecision.no_retry()
        return RetryDecision.retry(Backoff.of_default()) if cause else None


class DecidingLater(RetryStrategyWithContent):
    """A strategy that looks at bodies and takes its time to forbid."""

    async def should_retry(
        self,
        ctx: ClientRequestContext,
        cause: Exception | None,
        content: bytes | None,
    ) -> RetryDecision:
        return RetryDecision.next() if content else RetryDecision.no_retry()


class Linear(Backoff):
    """A backoff of one's own."""

    def __init__(self, step: float) -> None:
        self.step = step

    def next_delay(self, num_attempts_so_far: int) -> float | None:
        return self.step * num_attempts_so_far


class Counting(DecoratingClient):
    """A decorator written as a class."""

    calls = 0

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        self.calls += 1
        return await self.delegate.execute(ctx, request.with_header("X", "1"))


@client_decorator
async def signing(
    delegate: HttpClient, ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    """Be a decorator written as a function."""
    return await delegate.execute(ctx, request.replace(params={"a": "b"}))


def is_busy(cause: BaseException) -> bool:
    """Be a function among exceptions."""
    return "busy" in str(cause)


class OnlyTimeouts(CircuitBreakerStrategy):
    """A circuit breaker's strategy that counts timeouts only."""

    def should_report_as_success(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> bool | None:
        return not is_timeout(cause)


class Printing(CircuitBreakerListener):
    """A listener for one event only."""

    def on_state_changed(
        self, circuit_breaker: CircuitBreaker, state: CircuitState
    ) -> None:
        assert_type(circuit_breaker.name, str)


class Summing(RetryListener):
    """A listener of retries that is plain."""

    def on_retry(
        self, ctx: ClientRequestContext, cause: Exception | None, delay: float
    ) -> None:
        ctx.attributes["waited"] = ctx.attributes.get("waited", 0.0) + delay


class Leasing(RetryListener):
    """One that is not."""

    async def on_retry(
        self, ctx: ClientRequestContext, cause: Exception | None, delay: float
    ) -> None:
        await asyncio.sleep(0.1)


class Short(LogFormatter):
    """A formatter of one's own."""

    def format_request(self, log: RequestLog) -> str:
        return log.name

    def format_response(self, log: RequestLog) -> str:
        return str(log.response_status)


class FailuresOnly(LogFormatter):
    """A formatter that leaves lines out."""

    def format_request(self, log: RequestLog) -> None:
        return None

    def format_response(self, log: RequestLog) -> str | None:
        return None if log.response_cause is None else log.render()


async def fallback(
    ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    """Answer for a server that is down."""
    return new_response(request, 503, headers={"Retry-After": "1"}, body=b"later")


def level_of(log: RequestLog) -> int:
    """Choose a level."""
    return 30 if log.response_cause is None else 40


class Sampler:
    """Picks the calls that are logged."""

    def is_sampled(self, log: RequestLog) -> bool:
        """Pick what took long."""
        return (log.duration or 0.0) > 1.0


def hear_of_retries() -> None:
    """Give listeners to whatever retries."""
    listeners = [Summing(), Leasing(), RetryListener()]
    RetryConfig.standard(listeners=listeners)
    RetryingClient.new_decorator(RetryStrategy.failsafe(), listeners=listeners)
    RetryingRpcClient.new_decorator(RetryStrategy.failsafe(), listeners=listeners)
    SessionBuilder.standard(listeners=listeners)


def choose_standard_retries() -> None:
    """Give the standard chain retries of each kind."""
    standard = RetryConfig.standard(strategy=Plain(Linear(0.1)), limiter=None)
    assert_type(standard, RetryConfig)
    SessionBuilder.standard(retrying=standard)
    SessionBuilder.standard(retrying=RetryConfigMapping.per_host(lambda host: standard))
    SessionBuilder.standard(retrying=RetryingClient.new_decorator(standard))
    SessionBuilder.standard(retrying=None)


async def use(ctx: ClientRequestContext) -> None:
    """Stack, call, read."""
    config = RetryConfig(Plain(Linear(0.1)), max_total_attempts=3, attempt_timeout=None)
    builder = (
        SessionBuilder("http://localhost", headers={"User-Agent": "x"})
        .decorator(ScriptedTransport([503, TimeoutError(), (200, {}, b"")]))
        .decorator(Counting)
        .decorator(signing)
        .decorator(
            CircuitBreakerClient.new_per_host_decorator(
                lambda key: CircuitBreaker(key, listeners=[Printing()]),
                OnlyTimeouts(),
                fallback=fallback,
            )
        )
        .decorator(ContentPreviewingClient.new_decorator(200))
        .decorator(LoggingClient.new_decorator(formatter=Short()))
        .decorator(LoggingClient.new_decorator(formatter=FailuresOnly()))
        .decorator(
            LoggingClient.new_decorator(
                formatter=LogFormatter.json(nested=True), log_after="body"
            )
        )
        .decorator(LoggingClient.new_decorator(formatter=LogFormatter.tree()))
        .decorator(RetryingClient.new_decorator(config))
        .response_timeout(None)
        .connection_timings()
    )
    assert_type(builder, SessionBuilder)
    assert_type(builder.describe(), str)
    with capture_logs() as logs:
        async with builder.build() as session, session.get("/") as response:
            assert_type(session, aiohttp.ClientSession)
            assert_type(response, aiohttp.ClientResponse)
            log = RequestLog.of(response)
    assert_type(logs, list[RequestLog])
    assert_type(log, RequestLog)
    assert_type(log.children, tuple[RequestLog, ...])
    assert_type(log.response_timeout, float | None)
    assert_type(log.connection, ConnectionTimings | None)
    assert_type(log.sent_method, str | None)
    assert_type(log.sent_url, URL | None)
    log.to_svg("call.svg")
    log.to_svg(Path("call.svg"))
    assert_type(log.stop_reason, RetryStopReason | None)
    assert_type(RequestLog.of(response, None), RequestLog | None)
    assert_type(unwrap(session, RetryingClient), RetryingClient | None)
    decorators: list[Decorator] = [
        Counting,
        signing,
        RetryingClient.new_decorator(Awaiting(), max_total_attempts=2),
        RetryingClient.new_decorator(Awaiting(), 5, 3.0, use_retry_after=False),
        RetryingClient.new_decorator(RetryConfig(Awaiting(), 5, None)),
        RetryingClient.new_decorator(Awaiting(), limiter=RetryLimiter.concurrency(20)),
        RetryingClient.new_decorator(
            Awaiting(), limiter=RetryLimiter.token_based(10, 5, token_ratio=0.1)
        ),
        LoggingClient.new_decorator(
            request_log_level=10,
            successful_response_log_level=lambda log: 10 if log.children else None,
            failure_response_log_level=level_of,
            success_sampling_rate=Sampler().is_sampled,
            failure_sampling_rate=Sampler(),
        ),
        RetryingClient.new_decorator(LookingLater(), buffer_response=True),
        RetryingClient.new_decorator(RetryConfig(Looking(Backoff.of_default()))),
    ]
    assert_type(decorate(aiohttp.ClientSession(), *decorators), aiohttp.ClientSession)
    assert_type(undecorate(session), aiohttp.ClientSession)
    assert_type(await ask(Awaiting(), status=503), Backoff | None)
    assert_type(await ask(LookingLater(), content=b"busy"), Backoff | None)
    assert_type(CircuitBreaker().try_request(), CircuitPermit | None)
    function: Callable[[int | None, Exception | None], Backoff | None]
    function = lambda status, cause: Backoff.of("fixed=100")  # noqa: E731
    assert_type(RetryStrategy.on_status(function), RetryStrategy)
    rule = RetryRule(
        methods=["GET"],
        request_filter=lambda request: request.url.host == "localhost",
        statuses=range(502, 505),
        status_classes={4},
        exceptions=TimeoutError,
        on_timeout=True,
        on_unprocessed=True,
        slower_than=2,
        on_response=lambda ctx: ctx.log.response_status == 409,
        backoff=Linear(0.1),
    )
    assert_type(rule.backoff, Backoff | None)
    assert_type(RetryRule.no_retry(methods=("POST",)), RetryRule)
    assert_type(rule | Deciding() | RetryStrategy.never(), RetryStrategy)
    assert_type(rule | DecidingLater(), RetryStrategyWithContent)
    assert_type(DecidingLater() | rule, RetryStrategyWithContent)
    assert_type(Looking(Linear(0.1)) | DecidingLater(), RetryStrategyWithContent)
    assert_type(await ask(rule | DecidingLater(), status=503), Backoff | None)
    RetryingClient.new_decorator(rule | DecidingLater(), max_total_attempts=3)
    client: HttpClient = Counting(ScriptedTransport([]))
    result: Awaitable[aiohttp.ClientResponse]
    result = client.execute(ctx, HttpRequest("GET", "/"))
    await result


def rules() -> None:
    """Make rules of all kinds, and chains of them."""
    rule = RetryRule(exceptions=is_busy)
    RetryRule(exceptions=[TimeoutError, is_busy], slower_than=0.5)
    RetryRule(exceptions=lambda cause: "busy" in str(cause))
    inside = RetryRuleWithContent(
        methods=["GET"],
        exceptions=(is_busy,),
        on_content=lambda content: content is not None and b"busy" in content,
        max_content_length=64,
        backoff=Linear(0.1),
    )
    assert_type(inside | rule, RetryStrategyWithContent)
    assert_type(rule | inside, RetryStrategyWithContent)
    assert_type(RetryRuleWithContent.no_retry(on_content=bool), RetryRuleWithContent)
    RetryingClient.new_decorator(inside)
    counting = CircuitBreakerRule(statuses=[429], slower_than=2.0)
    assert_type(CircuitBreakerRule.failure(exceptions=is_busy), CircuitBreakerRule)
    assert_type(CircuitBreakerRule.success(methods=["HEAD"]), CircuitBreakerRule)
    strategy: CircuitBreakerStrategy
    strategy = (
        CircuitBreakerRule.ignore(methods=["POST"])
        | counting
        | counting
        | OnlyTimeouts()
    )
    CircuitBreakerClient.new_per_path_decorator(strategy=strategy)
    CircuitBreakerClient.new_decorator(CircuitBreaker(), counting)
    looking = CircuitBreakerRuleWithContent(on_content=bool, max_content_length=64)
    assert_type(
        CircuitBreakerRuleWithContent.success(on_content=bool),
        CircuitBreakerRuleWithContent,
    )
    CircuitBreakerClient.new_per_host_decorator(strategy=looking, enforce=False)
    CircuitBreakerClient.new_decorator(
        CircuitBreaker(), counting | looking | counting | OnlyTimeouts()
    )
    CircuitBreakerRpcClient.new_decorator(CircuitBreaker(), looking | counting)
    patient = CircuitBreaker(
        success_threshold=3, circuit_open_window=Backoff.exponential(10.0, 120.0)
    )
    patient.update(circuit_open_window=5.0, minimum_request_threshold=20)
    patient.update(consecutive_failures=None)
    CircuitBreakerClient.new_decorator(patient, wait_for_ready=5.0)
    CircuitBreakerClient.new_per_path_decorator(wait_for_ready=None)
    CircuitBreakerRpcClient.new_decorator(patient, wait_for_ready=5)
    CircuitBreaker(consecutive_failures=5).update(consecutive_failures=7)


def silence(ctx: ClientRequestContext, request: HttpRequest) -> int:
    """Be one of several answers."""
    return 200


def use_scripted_answers() -> None:
    """Answer from lists in variables, of one kind or mixed, and from what is alike."""
    mixed = [503, lambda ctx, request: asyncio.sleep(60), 200]
    ScriptedTransport(mixed)
    statuses = [503, 200]
    ScriptedTransport(statuses)
    failures = [TimeoutError(), aiohttp.ServerDisconnectedError]
    ScriptedTransport(failures)
    bodies = [(503, b"busy"), (200, {"orders": [7]}), (200, {"A": "1"}, "text")]
    ScriptedTransport(bodies)
    documents = [{"orders": [7]}, [7], 503, silence]
    ScriptedTransport(documents)
    ScriptedTransport((503, 200))
    ScriptedTransport(repeat(503))
    annotated: list[ScriptedAnswer] = [503, silence, (200, {"orders": [7]}), [7]]
    transport = ScriptedTransport(annotated)
    assert_type(transport.unused, list[object])
    assert_type(transport.requests, list[HttpRequest])
    with patch_aioresponses():
        patch_aioresponses()


def use_opentelemetry() -> None:
    """Trace calls, and listen to circuit breakers, budgets and limits."""
    decorator = opentelemetry.TracingClient.new_decorator(
        trace.get_tracer_provider(),
        metrics.get_meter_provider(),
        propagator=propagate.get_global_textmap(),
    )
    assert_type(decorator, Decorator)
    assert_type(opentelemetry.TracingClient.new_decorator(), Decorator)
    CircuitBreaker(listeners=[Printing(), opentelemetry.CircuitBreakerMetrics()])
    RetryBudget.per_host(listeners=[opentelemetry.RetryBudgetMetrics()])
    ConcurrencyLimit.aimd(listeners=[opentelemetry.ConcurrencyLimitMetrics()])


def use_prometheus() -> None:
    """Count in a registry of one's own, and in the default one."""
    registry = CollectorRegistry()
    assert_type(prometheus.MetricsClient.new_decorator(registry), Decorator)
    assert_type(prometheus.MetricsClient.new_decorator(), Decorator)
    CircuitBreaker(listeners=[Printing(), prometheus.CircuitBreakerMetrics()])
    RetryBudget.per_host(listeners=[prometheus.RetryBudgetMetrics(registry)])
    ConcurrencyLimit.aimd(listeners=[prometheus.ConcurrencyLimitMetrics(registry)])
