"""Composable retrying, logging and circuit breaking for aiohttp sessions.

Stack decorators on a session builder; what is built is an ``aiohttp.ClientSession``.
"""

import typing as _typing

from . import smithy  # noqa: F401

if _typing.TYPE_CHECKING:
    from ._bodies.response_content import new_response as new_response
    from ._breaker.breaker import CircuitBreaker as CircuitBreaker
    from ._breaker.breaker import CircuitBreakerListener as CircuitBreakerListener
    from ._breaker.breaker import FailFastError as FailFastError
    from ._breaker.client import CircuitBreakerClient as CircuitBreakerClient
    from ._breaker.state import CircuitPermit as CircuitPermit
    from ._breaker.state import CircuitState as CircuitState
    from ._breaker.state import EventCount as EventCount
    from ._breaker.strategy import CircuitBreakerRule as CircuitBreakerRule
    from ._breaker.strategy import (
        CircuitBreakerRuleWithContent as CircuitBreakerRuleWithContent,
    )
    from ._breaker.strategy import CircuitBreakerStrategy as CircuitBreakerStrategy
    from ._call.outcome import RetryStopReason as RetryStopReason
    from ._call.record import ConnectionTimings as ConnectionTimings
    from ._context.client import DecoratingClient as DecoratingClient
    from ._context.client import Decorator as Decorator
    from ._context.client import HttpClient as HttpClient
    from ._context.client import RpcClient as RpcClient
    from ._context.client import client_decorator as client_decorator
    from ._context.context import ClientRequestContext as ClientRequestContext
    from ._context.context import ResponseTimeoutMode as ResponseTimeoutMode
    from ._endpoints.client import LoadBalancingClient as LoadBalancingClient
    from ._endpoints.group import DynamicEndpointGroup as DynamicEndpointGroup
    from ._endpoints.group import EndpointGroup as EndpointGroup
    from ._endpoints.health import (
        HealthCheckedEndpointGroup as HealthCheckedEndpointGroup,
    )
    from ._endpoints.roster import EmptyEndpointGroupError as EmptyEndpointGroupError
    from ._endpoints.roster import EndpointGroupError as EndpointGroupError
    from ._endpoints.roster import (
        EndpointSelectionTimeoutError as EndpointSelectionTimeoutError,
    )
    from ._endpoints.selection import (
        EndpointSelectionStrategy as EndpointSelectionStrategy,
    )
    from ._endpoints.state import EndpointGroupListener as EndpointGroupListener
    from ._endpoints.state import EndpointState as EndpointState
    from ._endpoints.state import OutlierDetection as OutlierDetection
    from ._errors import AttemptTimeoutError as AttemptTimeoutError
    from ._errors import ResponseTimeoutError as ResponseTimeoutError
    from ._errors import UnprocessedRequestError as UnprocessedRequestError
    from ._failures.failure import RetrySafety as RetrySafety
    from ._failures.failure import is_timeout as is_timeout
    from ._failures.failure import is_unprocessed as is_unprocessed
    from ._failures.failure import peel as peel
    from ._failures.failure import retry_safety as retry_safety
    from ._hedging.client import HedgingClient as HedgingClient
    from ._hedging.delay import HedgingDelay as HedgingDelay
    from ._limits.client import ConcurrencyLimitError as ConcurrencyLimitError
    from ._limits.client import ConcurrencyLimitingClient as ConcurrencyLimitingClient
    from ._limits.concurrency_limit import ConcurrencyLimit as ConcurrencyLimit
    from ._limits.concurrency_limit import (
        ConcurrencyLimitListener as ConcurrencyLimitListener,
    )
    from ._limits.rate_client import RateLimitingClient as RateLimitingClient
    from ._limits.rate_limit import RateLimit as RateLimit
    from ._limits.rate_limit import RateLimitError as RateLimitError
    from ._log.request_log import RequestLog as RequestLog
    from ._log.request_log import capture_logs as capture_logs
    from ._logging.client import LoggingClient as LoggingClient
    from ._logging.formatter import LogFormatter as LogFormatter
    from ._logging.previews import ContentPreviewingClient as ContentPreviewingClient
    from ._policies.backoff import Backoff as Backoff
    from ._report.report import Report as Report
    from ._request.endpoint import Endpoint as Endpoint
    from ._request.request import HttpRequest as HttpRequest
    from ._request.request import RpcRequest as RpcRequest
    from ._resuming.client import ResumingClient as ResumingClient
    from ._retry.budget import PerHostRetryBudget as PerHostRetryBudget
    from ._retry.budget import RetryBudget as RetryBudget
    from ._retry.budget import RetryBudgetListener as RetryBudgetListener
    from ._retry.client import RetryingClient as RetryingClient
    from ._retry.config import RetryConfig as RetryConfig
    from ._retry.config import RetryConfigMapping as RetryConfigMapping
    from ._retry.config import RetryListener as RetryListener
    from ._retry.limiter import RetryLimiter as RetryLimiter
    from ._retry.strategy import IDEMPOTENT_METHODS as IDEMPOTENT_METHODS
    from ._retry.strategy import RetryDecision as RetryDecision
    from ._retry.strategy import RetryRule as RetryRule
    from ._retry.strategy import RetryRuleWithContent as RetryRuleWithContent
    from ._retry.strategy import RetryStrategy as RetryStrategy
    from ._retry.strategy import RetryStrategyWithContent as RetryStrategyWithContent
    from ._session.builder import SessionBuilder as SessionBuilder
    from ._session.builder import decorate as decorate
    from ._session.builder import decorate_standard as decorate_standard
    from ._session.builder import request_options as request_options
    from ._session.builder import undecorate as undecorate
    from ._session.builder import unwrap as unwrap
    from ._session.functions import CircuitBreakerRpcClient as CircuitBreakerRpcClient
    from ._session.functions import LoggingRpcClient as LoggingRpcClient
    from ._session.functions import RetryingRpcClient as RetryingRpcClient
    from ._session.functions import rpc as rpc
    from ._tokens.key_client import IdempotencyKeyClient as IdempotencyKeyClient
    from ._tokens.refreshing_client import RefreshingClient as RefreshingClient

    __version__: str
else:
    from ._facade import facade_of as _facade_of

    __all__, _load, __dir__ = _facade_of(__name__)

    def __getattr__(name):
        # Reading the metadata takes longer than the rest of the import.
        if name == "__version__":
            from importlib.metadata import version  # noqa: PLC0415

            return version("aioretry-smithy")
        return _load(name)
