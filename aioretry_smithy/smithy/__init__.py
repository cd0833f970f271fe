"""Smithy's retry strategies: tokens, a quota, the standard and the adaptive mode.

Give one to a retrying client, or use it in a loop of your own: none of it needs a
session.
"""

import typing as _typing

if _typing.TYPE_CHECKING:
    from .._failures.hints import Fault, RetryInfo
    from .._retry.classify import (
        DEFAULT_CLASSIFIERS,
        Classifier,
        ErrorKind,
        Failure,
        RetryAction,
        by_code,
        by_exception,
        by_status,
        only_idempotent,
    )
    from .._retry.client import sdk_headers
    from .._retry.smithy_strategies import from_backoff, to_backoff
    from . import sync as sync
    from .interfaces import (
        BackoffExhaustedError,
        CallError,
        CapacityNotAvailableError,
        ClientTimeoutError,
        ErrorRetryInfo,
        ExponentialBackoffJitterType,
        ExponentialRetryBackoffStrategy,
        HasFault,
        ModeledError,
        RetryBackoffStrategy,
        RetryError,
        RetryStrategy,
        RetryToken,
        SimpleRetryToken,
        StandardRetryToken,
    )
    from .limiters import ClientRateLimiter, RetryProfile, StandardRetryQuota
    from .mode import (
        RetryMode,
        RetryStrategyOptions,
        RetryStrategyResolver,
        RetryStrategyType,
        new_strategy,
        strategy_from_env,
    )
    from .strategies import (
        AdaptiveRetryStrategy,
        SimpleRetryStrategy,
        StandardRetryStrategy,
    )
else:
    from .._facade import facade_of as _facade_of

    __getattr__, __dir__ = _facade_of(__name__)

__all__ = [
    "DEFAULT_CLASSIFIERS",
    "AdaptiveRetryStrategy",
    "BackoffExhaustedError",
    "CallError",
    "CapacityNotAvailableError",
    "Classifier",
    "ClientRateLimiter",
    "ClientTimeoutError",
    "ErrorKind",
    "ErrorRetryInfo",
    "ExponentialBackoffJitterType",
    "ExponentialRetryBackoffStrategy",
    "Failure",
    "Fault",
    "HasFault",
    "ModeledError",
    "RetryAction",
    "RetryBackoffStrategy",
    "RetryError",
    "RetryInfo",
    "RetryMode",
    "RetryProfile",
    "RetryStrategy",
    "RetryStrategyOptions",
    "RetryStrategyResolver",
    "RetryStrategyType",
    "RetryToken",
    "SimpleRetryStrategy",
    "SimpleRetryToken",
    "StandardRetryQuota",
    "StandardRetryStrategy",
    "StandardRetryToken",
    "by_code",
    "by_exception",
    "by_status",
    "from_backoff",
    "new_strategy",
    "only_idempotent",
    "sdk_headers",
    "strategy_from_env",
    "to_backoff",
]
