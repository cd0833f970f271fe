"""Facades that load a public name when it is asked for, not when they are imported."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_PACKAGE: Final = __name__.partition(".")[0]
_NOTHING: Final = ModuleType("nothing")

PUBLIC: Final = {
    "aioretry_smithy": {
        "IDEMPOTENT_METHODS": "._retry.strategy",
        "AttemptTimeoutError": "._errors",
        "Backoff": "._policies.backoff",
        "CircuitBreaker": "._breaker.breaker",
        "CircuitBreakerClient": "._breaker.client",
        "CircuitBreakerListener": "._breaker.breaker",
        "CircuitBreakerRpcClient": "._session.functions",
        "CircuitBreakerRule": "._breaker.strategy",
        "CircuitBreakerRuleWithContent": "._breaker.strategy",
        "CircuitBreakerStrategy": "._breaker.strategy",
        "CircuitPermit": "._breaker.state",
        "CircuitState": "._breaker.state",
        "ClientRequestContext": "._context.context",
        "ConcurrencyLimit": "._limits.concurrency_limit",
        "ConcurrencyLimitError": "._limits.client",
        "ConcurrencyLimitListener": "._limits.concurrency_limit",
        "ConcurrencyLimitingClient": "._limits.client",
        "ConnectionTimings": "._call.record",
        "ContentPreviewingClient": "._logging.previews",
        "DecoratingClient": "._context.client",
        "Decorator": "._context.client",
        "DynamicEndpointGroup": "._endpoints.group",
        "EmptyEndpointGroupError": "._endpoints.choice",
        "Endpoint": "._request.endpoint",
        "EndpointGroup": "._endpoints.group",
        "EndpointGroupError": "._endpoints.choice",
        "EndpointGroupListener": "._endpoints.state",
        "EndpointSelectionStrategy": "._endpoints.selection",
        "EndpointSelectionTimeoutError": "._endpoints.choice",
        "EndpointState": "._endpoints.state",
        "EventCount": "._breaker.state",
        "FailFastError": "._breaker.breaker",
        "HealthCheckedEndpointGroup": "._endpoints.health",
        "HedgingClient": "._hedging.client",
        "HedgingDelay": "._hedging.delay",
        "HttpClient": "._context.client",
        "HttpRequest": "._request.request",
        "IdempotencyKeyClient": "._tokens.key_client",
        "LoadBalancingClient": "._endpoints.client",
        "LogFormatter": "._logging.formatter",
        "LoggingClient": "._logging.client",
        "LoggingRpcClient": "._session.functions",
        "OutlierDetection": "._endpoints.state",
        "PerHostRetryBudget": "._retry.budget",
        "RateLimit": "._limits.rate_limit",
        "RateLimitError": "._limits.rate_limit",
        "RateLimitingClient": "._limits.rate_client",
        "RefreshingClient": "._tokens.refreshing_client",
        "Report": "._report.report",
        "RequestLog": "._log.request_log",
        "ResponseTimeoutError": "._errors",
        "ResponseTimeoutMode": "._context.context",
        "ResumingClient": "._resuming.client",
        "RetryBudget": "._retry.budget",
        "RetryBudgetListener": "._retry.budget",
        "RetryConfig": "._retry.config",
        "RetryConfigMapping": "._retry.config",
        "RetryDecision": "._retry.strategy",
        "RetryLimiter": "._retry.limiter",
        "RetryListener": "._retry.config",
        "RetryRule": "._retry.strategy",
        "RetryRuleWithContent": "._retry.strategy",
        "RetrySafety": "._failures.failure",
        "RetryStopReason": "._call.outcome",
        "RetryStrategy": "._retry.strategy",
        "RetryStrategyWithContent": "._retry.strategy",
        "RetryingClient": "._retry.client",
        "RetryingRpcClient": "._session.functions",
        "RpcClient": "._context.client",
        "RpcRequest": "._request.request",
        "SessionBuilder": "._session.builder",
        "UnprocessedRequestError": "._errors",
        "capture_logs": "._log.request_log",
        "client_decorator": "._context.client",
        "decorate": "._session.builder",
        "decorate_standard": "._session.builder",
        "is_timeout": "._failures.failure",
        "is_unprocessed": "._failures.failure",
        "new_response": "._bodies.response_content",
        "peel": "._failures.failure",
        "request_options": "._session.builder",
        "retry_safety": "._failures.failure",
        "rpc": "._session.functions",
        "undecorate": "._session.builder",
        "unwrap": "._session.builder",
    },
    "aioretry_smithy.smithy": {
        "DEFAULT_CLASSIFIERS": "._retry.classify",
        "AdaptiveRetryStrategy": ".smithy.strategies",
        "BackoffExhaustedError": ".smithy.interfaces",
        "CallError": ".smithy.interfaces",
        "CapacityNotAvailableError": ".smithy.interfaces",
        "Classifier": "._retry.classify",
        "ClientRateLimiter": ".smithy.limiters",
        "ClientTimeoutError": ".smithy.interfaces",
        "ErrorKind": "._retry.classify",
        "ErrorRetryInfo": ".smithy.interfaces",
        "ExponentialBackoffJitterType": ".smithy.interfaces",
        "ExponentialRetryBackoffStrategy": ".smithy.interfaces",
        "Failure": "._retry.classify",
        "Fault": "._failures.hints",
        "HasFault": ".smithy.interfaces",
        "ModeledError": ".smithy.interfaces",
        "RetryAction": "._retry.classify",
        "RetryBackoffStrategy": ".smithy.interfaces",
        "RetryError": ".smithy.interfaces",
        "RetryInfo": "._failures.hints",
        "RetryMode": ".smithy.mode",
        "RetryProfile": ".smithy.limiters",
        "RetryStrategy": ".smithy.interfaces",
        "RetryStrategyOptions": ".smithy.mode",
        "RetryStrategyResolver": ".smithy.mode",
        "RetryStrategyType": ".smithy.mode",
        "RetryToken": ".smithy.interfaces",
        "SimpleRetryStrategy": ".smithy.strategies",
        "SimpleRetryToken": ".smithy.interfaces",
        "StandardRetryQuota": ".smithy.limiters",
        "StandardRetryStrategy": ".smithy.strategies",
        "StandardRetryToken": ".smithy.interfaces",
        "by_code": "._retry.classify",
        "by_exception": "._retry.classify",
        "by_status": "._retry.classify",
        "from_backoff": "._retry.smithy_strategies",
        "new_strategy": ".smithy.mode",
        "only_idempotent": "._retry.classify",
        "sdk_headers": "._retry.client",
        "strategy_from_env": ".smithy.mode",
        "to_backoff": "._retry.smithy_strategies",
    },
    "aioretry_smithy.testing": {
        "FaultInjectingClient": ".testing._faults",
        "InjectedFault": ".testing._faults",
        "ScriptedAnswer": ".testing._transport",
        "ScriptedTransport": ".testing._transport",
        "SimulatedRun": ".testing._simulation",
        "SimulationResult": ".testing._simulation",
        "SimulationSettings": ".testing._simulation",
        "VirtualTimeLoop": ".testing._virtual_time",
        "ask": ".testing._transport",
        "patch_aioresponses": ".testing._transport",
        "simulate": ".testing._virtual_time",
    },
}
"""The module, seen from the package, that each name of a facade is defined in."""

_MODULES: Final = {"aioretry_smithy.smithy": {"sync"}}
"""The public modules of a facade that need no extra, to be found without an import."""

_unloaded = {(package, name) for package, names in PUBLIC.items() for name in names}


def facade_of(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package that is a facade.

    Imports point downwards only, so threads that load at the same time never wait for
    each other in a circle: the locks of Python's own imports are enough.
    """
    names, module = PUBLIC[package], sys.modules[package]
    modules = _MODULES.get(package, set())

    def load(name: str) -> object:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in names:
            message = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(message, name=name, obj=module)
        public: object = getattr(_imported(names[name], name), name)
        publish()
        return public

    return load, lambda: sorted({*vars(module), *names, *modules})


def _imported(where: str, name: str) -> ModuleType:
    try:
        return import_module(where, _PACKAGE)
    except AttributeError as cause:
        # As it is, it would say that the facade has no such name.
        message = f"cannot load {name!r} from {_PACKAGE}{where}: {cause}"
        raise ImportError(message, name=_PACKAGE + where) from cause


def publish() -> None:
    """Put loaded public names into their facades, and set their ``__module__``.

    Tracebacks, reprs and pickles then tell where a name is to be imported from, also
    where it came along with another one; annotations are looked up there, too. Modules
    that load public names without the facade call this at their end.
    """
    for package, name in [*_unloaded]:
        loaded = vars(sys.modules.get(_PACKAGE + PUBLIC[package][name], _NOTHING))
        if name not in loaded or package not in sys.modules:
            continue
        public = loaded[name]
        if getattr(public, "__module__", "").startswith(f"{_PACKAGE}."):
            public.__module__ = package
        vars(sys.modules[package]).setdefault(name, public)
        _unloaded.discard((package, name))
