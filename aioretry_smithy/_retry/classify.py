"""Classify an outcome for a retry, by a chain of small functions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy

from .. import _checks as check
from .._bodies.response_content import read_head_within
from .._call.outcome import headers_of
from .._call.servers import time_of_failure
from .._errors import bad_argument
from .._failures.failure import Failure as JudgedFailure
from .._failures.failure import RetrySafety, failure_of, peel
from .._failures.hints import Fault, as_headers, retry_after
from .._log.error_text import describe_error
from .._values import extensible
from ..smithy.interfaces import CallError
from .ending import is_given_up
from .strategy import is_idempotent

if TYPE_CHECKING:
    from .._context.context import ClientRequestContext


_MAX_BYTES = 64 * 1024
_MAX_SECONDS = 1.0
_MEDIA_TYPE = re.compile(
    r"(?:application|text)/(?:[\w.-]+\+)?(?P<kind>json|xml)"
    r"|application/x-amz-json-[\d.]+",
    re.ASCII,
)
# Fit for messages and logs: no spaces, no control characters, not too long.
_CODE = re.compile(r"[!-~]{1,128}")
_MEMBER = re.compile(r'\s*[{,]\s*"(?P<name>(?:[^"\\]|\\.)*)"\s*:\s*')


async def read_error_code(
    response: aiohttp.ClientResponse, *, seconds: float = math.inf
) -> str | None:
    """Return the error code that a response carries.

    The code is in the first of these places, without a ``namespace#`` before it and a
    ``:url`` after it:

    1. the header ``x-amzn-errortype``; then the body is not read;
    2. in JSON the members ``__type`` and ``code``, and ``code`` inside ``error``, names
       in any case;
    3. in XML the first element ``<Code>``.

    Only statuses from 400 are looked at, and only bodies whose ``Content-Type`` is JSON
    or XML; of those at most 64 KiB, and only the part that arrives within *seconds*,
    one at most. The caller can still read them, and gets the error of one that fails.

    Returns:
        At most 128 printable ASCII characters without a space; None without such a
        code.

    Source: the restJson1, awsJson, restXml, awsQuery and ec2Query protocols of Smithy.

    >>> async def code_of(body):
    ...     headers = {"Content-Type": "application/x-amz-json-1.0"}
    ...     request = HttpRequest("POST", "http://localhost/")
    ...     response = new_response(request, 400, headers=headers, body=body)
    ...     return await read_error_code(response)
    >>> asyncio.run(code_of(b'{"__type": "com.example#SlowDown"}'))
    'SlowDown'
    """
    if response.status < 400:
        return None
    headers = headers_of(response)
    header = _bare(headers.get("x-amzn-errortype"))
    if header is not None:
        return header
    media_type = headers.get("Content-Type", "").partition(";")[0]
    match = _MEDIA_TYPE.fullmatch(media_type.strip().lower())
    if match is None:
        return None
    look = _in_xml if match["kind"] == "xml" else _in_json
    head = await read_head_within(
        response,
        _MAX_BYTES,
        seconds=min(_MAX_SECONDS, seconds),
        # The first code in the body wins: later bytes cannot change it.
        enough=lambda head: _bare(next(iter(look(head)), None)) is not None,
    )
    return next(filter(None, map(_bare, look(head))), None)


def _bare(code: object) -> str | None:
    if not isinstance(code, str):
        return None
    code, _, url = code.partition(":")
    if url.startswith("//"):
        return None
    name = code.rpartition("#")[2].strip()
    return name if _CODE.fullmatch(name) else None


def _in_json(body: bytes) -> Iterable[object]:
    members = dict(_members(body.decode("utf-8-sig", "replace")))
    error = members.get("error")
    inner = error.items() if isinstance(error, dict) else ()
    nested = (value for name, value in inner if name.lower() == "code")
    return chain([members.get("__type"), members.get("code")], nested)


def _members(text: str) -> Iterator[tuple[str, object]]:
    """Yield the members of a JSON object that may be cut, with names in lower case."""
    # Python refuses integers of thousands of digits.
    decode = json.JSONDecoder(parse_int=float).raw_decode
    end = 0
    while member := _MEMBER.match(text, end):
        try:
            value, end = decode(text, member.end())
        except (ValueError, RecursionError):
            return
        yield member["name"].lower(), value


def _in_xml(body: bytes) -> Iterable[str]:
    # Few services answer in XML.
    from xml.parsers import expat  # noqa: PLC0415

    codes: list[str] = []
    text: list[str] = []
    # Ignore the declared encoding: codec lookups are only for trusted documents.
    parser = expat.ParserCreate("utf-8")

    def start(name: str, attributes: dict[str, str]) -> None:
        if _is_code(name):
            parser.CharacterDataHandler = text.append

    def end(name: str) -> None:
        if _is_code(name):
            parser.CharacterDataHandler = None
            codes.append("".join(text))
            text.clear()

    def refuse(*doctype: object) -> None:
        # Without one there are no entities to expand.
        raise ValueError

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = refuse
    # The codes before the end of a cut or broken document count.
    with suppress(expat.ExpatError, ValueError):
        parser.Parse(body, False)
    return codes


def _is_code(element: str) -> bool:
    return element.rpartition(":")[2] == "Code"


# Stands for a number of too many digits, which is read as infinity.
_LONGEST_RETRY_AFTER = 1e10


class ErrorKind(StrEnum):
    """The kind of a failure that may be retried."""

    TRANSIENT = "transient"
    """The failure will pass."""

    TIMEOUT = "timeout"
    """Time ran out, here or at the server."""

    THROTTLING = "throttling"
    """The server complains of too many requests."""


@extensible
@dataclass(frozen=True, slots=True, repr=False)
class RetryAction:
    """The verdict of a classifier: :meth:`retry` or :meth:`forbid`.

    Args:
        kind: The kind of the failure; None forbids a retry.
        retry_after: Seconds that the server asks to wait, finite and >= 0, or
            None.

    Raises:
        ValueError: An argument is out of range.
    """

    kind: ErrorKind | None
    retry_after: float | None = None

    def __post_init__(self) -> None:
        if self.kind is not None:
            check.kind("kind", self.kind, ErrorKind)
        check.not_negative("retry_after", self.retry_after, or_none=True)

    @staticmethod
    def retry(
        kind: ErrorKind = ErrorKind.TRANSIENT, *, retry_after: float | None = None
    ) -> RetryAction:
        """Allow a retry.

        Args:
            kind: The kind of the failure: strategies wait longer after
                throttling, and some pay more after a timeout.
            retry_after: Seconds that the server asks to wait. None keeps the
                hint of an earlier classifier, or else of the response headers.

        Raises:
            ValueError: An argument is out of range.

        >>> RetryAction.retry(ErrorKind.THROTTLING, retry_after=1.5)
        RetryAction.retry(ErrorKind.THROTTLING, retry_after=1.5)
        """
        check.kind("kind", kind, ErrorKind)
        return RetryAction(kind, retry_after)

    @staticmethod
    def forbid() -> RetryAction:
        """Forbid a retry; no further classifier is asked.

        >>> RetryAction.forbid()
        RetryAction.forbid()
        """
        return _FORBID

    def __repr__(self) -> str:
        if self.kind is None:
            return "RetryAction.forbid()"
        wait = "" if self.retry_after is None else f", retry_after={self.retry_after!r}"
        return f"RetryAction.retry(ErrorKind.{self.kind.name}{wait})"


_FORBID = RetryAction(None)


@dataclass(frozen=True, slots=True)
class Failure:
    """One outcome, for a classifier to judge."""

    ctx: ClientRequestContext
    """The attempt; ``ctx.request`` is its request and ``ctx.log`` has its outcome."""

    cause: Exception | None = None
    """The exception of a failed attempt, or None when there is a response."""

    code: str | None = None
    """The error code of the response, without namespace and URL."""

    @property
    def status(self) -> int | None:
        """The status of the response, or None without one.

        Also the status of a response that a decorator turned into an error by
        ``raise_for_status()``, or of a proxy that refused.
        """
        answer = failure_of(self.cause).answer
        return self.ctx.record.outcome.status if answer is None else answer.status

    @property
    def headers(self) -> CIMultiDictProxy[str]:
        """The headers that came with the :attr:`status`; empty without one."""
        answer = None if self.cause is None else failure_of(self.cause).answer
        headers = self.ctx.record.outcome.headers if answer is None else answer.headers
        if isinstance(headers, CIMultiDictProxy):
            return headers
        # Those of a test kit may be of any class.
        return CIMultiDictProxy(CIMultiDict(as_headers(headers)))

    @property
    def retry_after(self) -> float | None:
        """Seconds that the headers ask to wait, or None."""
        ctx = self.ctx
        arrived = time_of_failure(ctx.call, ctx.record.outcome, self.cause)
        seconds = retry_after(self.headers, now=arrived)
        return None if seconds is None else min(seconds, _LONGEST_RETRY_AFTER)


Classifier: TypeAlias = Callable[[Failure, RetryAction | None], RetryAction | None]
"""Judge an outcome, given the verdict of earlier classifiers; None abstains."""


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
    judged = failure_of(failure.cause)
    info = judged.info
    given_up = is_given_up(failure.ctx.record, failure.cause)
    if info.allows_retry and not (judged.raised_by_caller or given_up):
        return RetryAction(_kind(judged), info.retry_after)
    # A status tells more, and has been judged already.
    says_no = judged.forbids_retry or info.fault == "client"
    is_judged = judged.answer is not None and not says_no
    if given_up or (judged.safety is RetrySafety.NO and not is_judged):
        return RetryAction.forbid()
    if previous is not None or is_judged:
        return None
    is_usual = isinstance(peel(failure.cause), aiohttp.ClientError | OSError)
    if not is_usual and judged.connection_made is None:
        return None
    return RetryAction(_kind(judged), info.retry_after)


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
    is_safe = cause is not None and failure_of(cause).safety is RetrySafety.YES
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
    elif is_retry_safe is False and failure_of(failure.cause).info.is_throttling_error:
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


def _kind(judged: JudgedFailure) -> ErrorKind:
    if judged.info.is_throttling_error:
        return ErrorKind.THROTTLING
    is_late = judged.info.is_timeout_error or judged.kind.is_timeout
    return ErrorKind.TIMEOUT if is_late else ErrorKind.TRANSIENT


def _fault(failure: Failure) -> Fault:
    judged = failure_of(failure.cause)
    if judged.info.fault is not None:
        return judged.info.fault
    # As in smithy-python: it was the client that gave up.
    if judged.kind.is_timeout:
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
