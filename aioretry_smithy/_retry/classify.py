"""Classify an outcome for a retry, by a chain of small functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp

from .._context.context import record_of
from .._errors import bad_argument
from .._failures.retry_info import Fault, RetryInfo
from .._failures.safety import (
    RetrySafety,
    is_timeout,
    peel,
    raised_by_caller,
    retry_safety,
)
from .._log.error_text import describe_error
from ..smithy.errors import CallError
from .failure import Classifier, ErrorKind, Failure, RetryAction, raised_for_status
from .given_up import is_given_up
from .strategy import is_idempotent

if TYPE_CHECKING:
    from collections.abc import Sequence


THROTTLING_CODES: frozenset[str] = frozenset(
    "BandwidthLimitExceeded EC2ThrottledException LimitExceededException"
    " PriorRequestNotComplete ProvisionedThroughputExceededException"
    " RequestLimitExceeded RequestThrottled RequestThrottledException SlowDown"
    " ThrottledException Throttling ThrottlingException TooManyRequestsException"
    " TransactionInProgressException".split()
)
"""The error codes by which AWS services complain of too many requests."""

TIMEOUT_CODES: frozenset[str] = frozenset({"RequestTimeout", "RequestTimeoutException"})
"""The error codes by which AWS services say that time ran out."""

TRANSIENT_CODES: frozenset[str] = frozenset(
    {"IDPCommunicationError", "IDPCommunicationErrorException"}
)
"""The error codes by which AWS STS says that it cannot reach an identity provider."""

_KINDS_OF_CODES = {
    **dict.fromkeys(THROTTLING_CODES, ErrorKind.THROTTLING),
    **dict.fromkeys(TIMEOUT_CODES, ErrorKind.TIMEOUT),
    **dict.fromkeys(TRANSIENT_CODES, ErrorKind.TRANSIENT),
}

_KINDS = {
    408: ErrorKind.TIMEOUT,
    429: ErrorKind.THROTTLING,
    500: ErrorKind.TRANSIENT,
    502: ErrorKind.TRANSIENT,
    503: ErrorKind.TRANSIENT,
    504: ErrorKind.TIMEOUT,
}


def by_status(failure: Failure, previous: RetryAction | None) -> RetryAction | None:
    """Allow a retry after 408, 429, 500, 502, 503 and 504."""
    kind = _KINDS.get(failure.status or 0)
    return None if kind is None else RetryAction(kind)


def by_exception(failure: Failure, previous: RetryAction | None) -> RetryAction | None:
    """Allow a retry after timeouts and failed connections, except permanent failures.

    The attributes of :class:`ErrorRetryInfo` and :class:`HasFault` on an exception come
    before its class.
    """
    if failure.cause is None:
        return None
    cause = peel(failure.cause)
    info = RetryInfo.of(cause)
    given_up = is_given_up(record_of(failure.ctx)[1], failure.cause)
    if info.allows_retry and not (raised_by_caller(cause) or given_up):
        return RetryAction(_kind(info, cause), info.retry_after)
    if given_up or retry_safety(cause) is RetrySafety.NO:
        return RetryAction.forbid()
    # A status tells more, and has been judged already.
    if previous is not None or raised_for_status(failure.cause) is not None:
        return None
    if not isinstance(cause, aiohttp.ClientError | OSError):
        return None
    return RetryAction(_kind(info, cause), info.retry_after)


def by_code(failure: Failure, previous: RetryAction | None) -> RetryAction | None:
    """Allow a retry after error codes of throttling, timeouts and transient failures.

    The status makes no difference.

    Source: the Rust SDK's RFC on adaptive retries, and the AWS SDKs of today.
    """
    kind = _KINDS_OF_CODES.get(failure.code or "")
    return None if kind is None else RetryAction(kind)


def only_idempotent(
    failure: Failure, previous: RetryAction | None
) -> RetryAction | None:
    """Forbid a retry of a request that the server may have carried out.

    It allows a request with an idempotent method or an ``Idempotency-Key``, one that
    the server surely has not seen, and one whose failure says that a retry is safe. A
    Smithy strategy alone does not look at methods. Put this classifier last.

    >>> classifiers = (*DEFAULT_CLASSIFIERS, only_idempotent)
    """
    cause = failure.cause
    is_safe = cause is not None and retry_safety(cause) is RetrySafety.YES
    if is_safe or is_idempotent(failure.ctx):
        return None
    return RetryAction.forbid()


DEFAULT_CLASSIFIERS: tuple[Classifier, ...] = (by_status, by_exception, by_code)
"""The classifiers unless you say otherwise. Put your own behind them."""


def classify(
    failure: Failure, classifiers: Sequence[Classifier] = DEFAULT_CLASSIFIERS
) -> CallError:
    """Ask the classifiers in turn, and make an error for the strategy.

    A later verdict replaces an earlier one, but keeps its ``retry_after`` unless it has
    one of its own. After a verdict that forbids, no further classifier is asked. A
    verdict without one gets that of the response headers. Without a verdict a failure
    of the server, such as any other 5xx, is not safe to retry; for any other failure
    that is unknown.

    Raises:
        ValueError: A classifier returns something other than a verdict or None.

    Source: the classifiers of the Rust SDK.
    """
    verdict: RetryAction | None = None
    for classifier in classifiers:
        action = classifier(failure, verdict)
        if action is None:
            continue
        if not isinstance(action, RetryAction):
            raise bad_argument("classifier", action, "a RetryAction or None")
        if action.kind is None:
            return _error(failure, verdict, is_retry_safe=False)
        if action.retry_after is None and verdict is not None:
            action = RetryAction(action.kind, verdict.retry_after)
        verdict = action
    if verdict is not None:
        return _error(failure, verdict, is_retry_safe=True)
    unsafe = _fault(failure) == "server"
    return _error(failure, None, is_retry_safe=False if unsafe else None)


def _error(
    failure: Failure, verdict: RetryAction | None, *, is_retry_safe: bool | None
) -> CallError:
    kind = wait = None
    if verdict is not None:
        kind, wait = verdict.kind, verdict.retry_after
        wait = failure.retry_after if wait is None else wait
    elif is_retry_safe is False and _retry_info_of(failure).is_throttling_error:
        # No retry, but the rate limiter needs to know.
        kind = ErrorKind.THROTTLING
    error = CallError(
        _message(failure),
        fault=_fault(failure),
        is_retry_safe=is_retry_safe,
        retry_after=wait,
        is_throttling_error=kind is ErrorKind.THROTTLING,
        is_timeout_error=kind is ErrorKind.TIMEOUT,
        status=failure.status,
        code=failure.code,
    )
    error.__cause__ = failure.cause
    return error


def _retry_info_of(failure: Failure) -> RetryInfo:
    return RetryInfo.of(failure.cause and peel(failure.cause))


def _kind(info: RetryInfo, cause: BaseException) -> ErrorKind:
    if info.is_throttling_error:
        return ErrorKind.THROTTLING
    is_late = info.is_timeout_error or is_timeout(cause)
    return ErrorKind.TIMEOUT if is_late else ErrorKind.TRANSIENT


def _fault(failure: Failure) -> Fault:
    own = _retry_info_of(failure).fault
    if own is not None:
        return own
    # As in smithy-python: it was the client that gave up.
    if is_timeout(failure.cause):
        return "client"
    status = failure.status or 0
    if status < 400:
        return None
    return "client" if status < 500 else "server"


def _message(failure: Failure) -> str:
    cause, code = failure.cause, failure.code
    if cause is not None:
        return describe_error(cause, failure.ctx.log.mask)
    return f"status {failure.status}" + ("" if code is None else f", code {code}")
