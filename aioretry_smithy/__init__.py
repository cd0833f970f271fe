"""Composable retrying, logging and circuit breaking for aiohttp sessions.

Stack decorators on a session builder; what is built is an ``aiohttp.ClientSession``.
"""

import typing as _typing

from . import smithy  # noqa: F401

if _typing.TYPE_CHECKING:
    from ._bodies.response_content import new_response
    from ._breaker.breaker import CircuitBreaker, CircuitBreakerListener, FailFastError
    from ._breaker.client import CircuitBreakerClient
    from ._breaker.state import CircuitPermit, CircuitState, EventCount
    from ._breaker.strategy import (
        CircuitBreakerRule,
        CircuitBreakerRuleWithContent,
        CircuitBreakerStrategy,
    )
    from ._call.outcome import RetryStopReason
    from ._call.record import ConnectionTimings
    from ._context.client import (
        DecoratingClient,
        Decorator,
        HttpClient,
        RpcClient,
        client_decorator,
    )
    from ._context.context import ClientRequestContext, ResponseTimeoutMode
    from ._endpoints.client import LoadBalancingClient
    from ._endpoints.group import DynamicEndpointGroup, EndpointGroup
    from ._endpoints.health import HealthCheckedEndpointGroup
    from ._endpoints.roster import (
        EmptyEndpointGroupError,
        EndpointGroupError,
        EndpointSelectionTimeoutError,
    )
    from ._endpoints.selection import EndpointSelectionStrategy
    from ._endpoints.state import EndpointGroupListener, EndpointState, OutlierDetection
    from ._errors import (
        AttemptTimeoutError,
        ResponseTimeoutError,
        UnprocessedRequestError,
    )
    from ._failures.failure import (
        RetrySafety,
        is_timeout,
        is_unprocessed,
        peel,
        retry_safety,
    )
    from ._hedging.client import HedgingClient
    from ._hedging.delay import HedgingDelay
    from ._limits.client import ConcurrencyLimitError, ConcurrencyLimitingClient
    from ._limits.concurrency_limit import ConcurrencyLimit, ConcurrencyLimitListener
    from ._limits.rate_client import RateLimitingClient
    from ._limits.rate_limit import RateLimit, RateLimitError
    from ._log.request_log import RequestLog, capture_logs
    from ._logging.client import LoggingClient
    from ._logging.formatter import LogFormatter
    from ._logging.previews import ContentPreviewingClient
    from ._policies.backoff import Backoff
    from ._report.report import Report
    from ._request.endpoint import Endpoint
    from ._request.request import HttpRequest, RpcRequest
    from ._resuming.client import ResumingClient
    from ._retry.budget import PerHostRetryBudget, RetryBudget, RetryBudgetListener
    from ._retry.client import RetryingClient
    from ._retry.config import RetryConfig, RetryConfigMapping, RetryListener
    from ._retry.limiter import RetryLimiter
    from ._retry.strategy import (
        IDEMPOTENT_METHODS,
        RetryDecision,
        RetryRule,
        RetryRuleWithContent,
        RetryStrategy,
        RetryStrategyWithContent,
    )
    from ._session.builder import (
        SessionBuilder,
        decorate,
        decorate_standard,
        request_options,
        undecorate,
        unwrap,
    )
    from ._session.functions import (
        CircuitBreakerRpcClient,
        LoggingRpcClient,
        RetryingRpcClient,
        rpc,
    )
    from ._tokens.key_client import IdempotencyKeyClient
    from ._tokens.refreshing_client import RefreshingClient

    __version__: str
else:
    from ._facade import facade_of as _facade_of

    _load, __dir__ = _facade_of(__name__)

    def __getattr__(name):
        # Reading the metadata takes longer than the rest of the import.
        if name == "__version__":
            from importlib.metadata import version  # noqa: PLC0415

            return version("aioretry-smithy")
        return _load(name)


__all__ = [
    "IDEMPOTENT_METHODS",
    "AttemptTimeoutError",
    "Backoff",
    "CircuitBreaker",
    "CircuitBreakerClient",
    "CircuitBreakerListener",
    "CircuitBreakerRpcClient",
    "CircuitBreakerRule",
    "CircuitBreakerRuleWithContent",
    "CircuitBreakerStrategy",
    "CircuitPermit",
    "CircuitState",
    "ClientRequestContext",
    "ConcurrencyLimit",
    "ConcurrencyLimitError",
    "ConcurrencyLimitListener",
    "ConcurrencyLimitingClient",
    "ConnectionTimings",
    "ContentPreviewingClient",
    "DecoratingClient",
    "Decorator",
    "DynamicEndpointGroup",
    "EmptyEndpointGroupError",
    "Endpoint",
    "EndpointGroup",
    "EndpointGroupError",
    "EndpointGroupListener",
    "EndpointSelectionStrategy",
    "EndpointSelectionTimeoutError",
    "EndpointState",
    "EventCount",
    "FailFastError",
    "HealthCheckedEndpointGroup",
    "HedgingClient",
    "HedgingDelay",
    "HttpClient",
    "HttpRequest",
    "IdempotencyKeyClient",
    "LoadBalancingClient",
    "LogFormatter",
    "LoggingClient",
    "LoggingRpcClient",
    "OutlierDetection",
    "PerHostRetryBudget",
    "RateLimit",
    "RateLimitError",
    "RateLimitingClient",
    "RefreshingClient",
    "Report",
    "RequestLog",
    "ResponseTimeoutError",
    "ResponseTimeoutMode",
    "ResumingClient",
    "RetryBudget",
    "RetryBudgetListener",
    "RetryConfig",
    "RetryConfigMapping",
    "RetryDecision",
    "RetryLimiter",
    "RetryListener",
    "RetryRule",
    "RetryRuleWithContent",
    "RetrySafety",
    "RetryStopReason",
    "RetryStrategy",
    "RetryStrategyWithContent",
    "RetryingClient",
    "RetryingRpcClient",
    "RpcClient",
    "RpcRequest",
    "SessionBuilder",
    "UnprocessedRequestError",
    "capture_logs",
    "client_decorator",
    "decorate",
    "decorate_standard",
    "is_timeout",
    "is_unprocessed",
    "new_response",
    "peel",
    "request_options",
    "retry_safety",
    "rpc",
    "undecorate",
    "unwrap",
]
