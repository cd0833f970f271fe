"""Smithy's retry strategies: tokens, a quota, the standard and the adaptive mode.

Give one to a retrying client, or use it in a loop of your own: none of it needs a
session.
"""

import typing as _typing

if _typing.TYPE_CHECKING:
    from .._failures.hints import Fault as Fault
    from .._failures.hints import RetryInfo as RetryInfo
    from .._retry.classify import DEFAULT_CLASSIFIERS as DEFAULT_CLASSIFIERS
    from .._retry.classify import Classifier as Classifier
    from .._retry.classify import ErrorKind as ErrorKind
    from .._retry.classify import Failure as Failure
    from .._retry.classify import RetryAction as RetryAction
    from .._retry.classify import by_code as by_code
    from .._retry.classify import by_exception as by_exception
    from .._retry.classify import by_status as by_status
    from .._retry.classify import only_idempotent as only_idempotent
    from .._retry.client import sdk_headers as sdk_headers
    from .._retry.smithy_strategies import from_backoff as from_backoff
    from .._retry.smithy_strategies import to_backoff as to_backoff
    from . import sync as sync
    from .interfaces import BackoffExhaustedError as BackoffExhaustedError
    from .interfaces import CallError as CallError
    from .interfaces import CapacityNotAvailableError as CapacityNotAvailableError
    from .interfaces import ClientTimeoutError as ClientTimeoutError
    from .interfaces import ErrorRetryInfo as ErrorRetryInfo
    from .interfaces import ExponentialBackoffJitterType as ExponentialBackoffJitterType
    from .interfaces import (
        ExponentialRetryBackoffStrategy as ExponentialRetryBackoffStrategy,
    )
    from .interfaces import HasFault as HasFault
    from .interfaces import ModeledError as ModeledError
    from .interfaces import RetryBackoffStrategy as RetryBackoffStrategy
    from .interfaces import RetryError as RetryError
    from .interfaces import RetryStrategy as RetryStrategy
    from .interfaces import RetryToken as RetryToken
    from .interfaces import SimpleRetryToken as SimpleRetryToken
    from .interfaces import StandardRetryToken as StandardRetryToken
    from .limiters import ClientRateLimiter as ClientRateLimiter
    from .limiters import RetryProfile as RetryProfile
    from .limiters import StandardRetryQuota as StandardRetryQuota
    from .mode import RetryMode as RetryMode
    from .mode import RetryStrategyOptions as RetryStrategyOptions
    from .mode import RetryStrategyResolver as RetryStrategyResolver
    from .mode import RetryStrategyType as RetryStrategyType
    from .mode import new_strategy as new_strategy
    from .mode import strategy_from_env as strategy_from_env
    from .strategies import AdaptiveRetryStrategy as AdaptiveRetryStrategy
    from .strategies import SimpleRetryStrategy as SimpleRetryStrategy
    from .strategies import StandardRetryStrategy as StandardRetryStrategy
else:
    from .._facade import facade_of as _facade_of

    __all__, __getattr__, __dir__ = _facade_of(__name__)
