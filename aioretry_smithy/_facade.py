"""Facades that load a public name when it is asked for, not when they are imported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Final

_PACKAGE: Final = __name__.partition(".")[0]
_NOTHING: Final = ModuleType("nothing")

_DEFINED: Final = {
    "aioretry_smithy": {
        "._bodies.response_content": "new_response",
        "._breaker.breaker": "CircuitBreaker CircuitBreakerListener FailFastError",
        "._breaker.client": "CircuitBreakerClient",
        "._breaker.state": "CircuitPermit CircuitState EventCount",
        "._breaker.strategy": (
            "CircuitBreakerRule CircuitBreakerRuleWithContent CircuitBreakerStrategy"
        ),
        "._call.outcome": "RetryStopReason",
        "._call.record": "ConnectionTimings",
        "._context.client": (
            "DecoratingClient Decorator HttpClient RpcClient client_decorator"
        ),
        "._context.context": "ClientRequestContext ResponseTimeoutMode",
        "._endpoints.client": "LoadBalancingClient",
        "._endpoints.group": "DynamicEndpointGroup EndpointGroup",
        "._endpoints.health": "HealthCheckedEndpointGroup",
        "._endpoints.roster": (
            "EmptyEndpointGroupError EndpointGroupError EndpointSelectionTimeoutError"
        ),
        "._endpoints.selection": "EndpointSelectionStrategy",
        "._endpoints.state": "EndpointGroupListener EndpointState OutlierDetection",
        "._errors": "AttemptTimeoutError ResponseTimeoutError UnprocessedRequestError",
        "._failures.failure": "RetrySafety is_timeout is_unprocessed peel retry_safety",
        "._hedging.client": "HedgingClient",
        "._hedging.delay": "HedgingDelay",
        "._limits.client": "ConcurrencyLimitError ConcurrencyLimitingClient",
        "._limits.concurrency_limit": "ConcurrencyLimit ConcurrencyLimitListener",
        "._limits.rate_client": "RateLimitingClient",
        "._limits.rate_limit": "RateLimit RateLimitError",
        "._log.request_log": "RequestLog capture_logs",
        "._logging.client": "LoggingClient",
        "._logging.formatter": "LogFormatter",
        "._logging.previews": "ContentPreviewingClient",
        "._policies.backoff": "Backoff",
        "._report.report": "Report",
        "._request.endpoint": "Endpoint",
        "._request.request": "HttpRequest RpcRequest",
        "._resuming.client": "ResumingClient",
        "._retry.budget": "PerHostRetryBudget RetryBudget RetryBudgetListener",
        "._retry.client": "RetryingClient",
        "._retry.config": "RetryConfig RetryConfigMapping RetryListener",
        "._retry.limiter": "RetryLimiter",
        "._retry.strategy": (
            "IDEMPOTENT_METHODS RetryDecision RetryRule RetryRuleWithContent"
            " RetryStrategy RetryStrategyWithContent"
        ),
        "._session.builder": (
            "SessionBuilder decorate decorate_standard request_options undecorate"
            " unwrap"
        ),
        "._session.functions": (
            "CircuitBreakerRpcClient LoggingRpcClient RetryingRpcClient rpc"
        ),
        "._tokens.key_client": "IdempotencyKeyClient",
        "._tokens.refreshing_client": "RefreshingClient",
    },
    "aioretry_smithy.smithy": {
        "._failures.hints": "Fault RetryInfo",
        "._retry.classify": (
            "DEFAULT_CLASSIFIERS Classifier ErrorKind Failure RetryAction by_code"
            " by_exception by_status only_idempotent"
        ),
        "._retry.client": "sdk_headers",
        "._retry.smithy_strategies": "from_backoff to_backoff",
        ".smithy.interfaces": (
            "BackoffExhaustedError CallError CapacityNotAvailableError"
            " ClientTimeoutError ErrorRetryInfo ExponentialBackoffJitterType"
            " ExponentialRetryBackoffStrategy HasFault ModeledError"
            " RetryBackoffStrategy RetryError RetryStrategy RetryToken"
            " SimpleRetryToken StandardRetryToken"
        ),
        ".smithy.limiters": "ClientRateLimiter RetryProfile StandardRetryQuota",
        ".smithy.mode": (
            "RetryMode RetryStrategyOptions RetryStrategyResolver RetryStrategyType"
            " new_strategy strategy_from_env"
        ),
        ".smithy.strategies": (
            "AdaptiveRetryStrategy SimpleRetryStrategy StandardRetryStrategy"
        ),
    },
    "aioretry_smithy.testing": {
        ".testing._faults": "FaultInjectingClient InjectedFault",
        ".testing._simulation": "SimulatedRun SimulationResult SimulationSettings",
        ".testing._transport": (
            "ScriptedAnswer ScriptedTransport ask patch_aioresponses"
        ),
        ".testing._virtual_time": "VirtualTimeLoop simulate",
    },
}
"""The names of each facade, by the module, seen from the package, that defines them."""

PUBLIC: Final = {
    package: {name: where for where, names in modules.items() for name in names.split()}
    for package, modules in _DEFINED.items()
}
"""The module, seen from the package, that each name of a facade is defined in."""

_MODULES: Final = {"aioretry_smithy.smithy": {"sync"}}
"""The public modules of a facade that need no extra, to be found without an import."""

_unloaded = {(package, name) for package, names in PUBLIC.items() for name in names}


def facade_of(
    package: str,
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a package, for a facade.

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

    return sorted(names), load, lambda: sorted({*vars(module), *names, *modules})


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
