"""What failures mean: their classes, and whether a request may be sent again."""

from __future__ import annotations

import asyncio
import errno
import ssl

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from aioretry_smithy import (
    CircuitBreaker,
    FailFastError,
    ResponseTimeoutError,
    RetrySafety,
    UnprocessedRequestError,
    is_timeout,
    is_unprocessed,
    retry_safety,
)
from aioretry_smithy._errors import (
    bad_argument,
    is_finite,
    mark_redirected,
)

YES, MAYBE, NO = RetrySafety.YES, RetrySafety.MAYBE, RetrySafety.NO
KEY = ConnectionKey("example.com", 443, True, True, None, None, None)
INFO = aiohttp.RequestInfo(
    URL("http://example.com/"), "GET", CIMultiDictProxy(CIMultiDict()), URL("/")
)


def raised_from(error, cause):
    error.__cause__ = cause
    return error


class TemporaryError(RuntimeError):
    """Somebody's own error, which only happens to derive from a built-in one."""


FAILURES = [
    # failure, may be sent again, the server cannot have seen it, time ran out
    (aiohttp.ClientConnectorError(KEY, OSError(111, "refused")), YES, True, False),
    (aiohttp.ClientConnectorDNSError(KEY, OSError(1, "unknown")), YES, True, False),
    (aiohttp.ClientConnectorSSLError(KEY, ssl.SSLError(1)), YES, True, False),
    (aiohttp.ClientProxyConnectionError(KEY, OSError(111, "no")), YES, True, False),
    (aiohttp.ClientHttpProxyError(INFO, (), status=503), YES, True, False),
    (aiohttp.ConnectionTimeoutError(), YES, True, True),
    (aiohttp.ClientConnectorError(KEY, OSError(errno.ETIMEDOUT, "")), YES, True, True),
    (UnprocessedRequestError("too busy"), YES, True, False),
    (
        aiohttp.ClientConnectorCertificateError(KEY, ssl.CertificateError("no")),
        NO,
        True,
        False,
    ),
    (
        aiohttp.ServerFingerprintMismatch(b"a", b"b", "example.com", 443),
        NO,
        True,
        False,
    ),
    (aiohttp.InvalidURL("http://"), NO, True, False),
    (aiohttp.InvalidUrlClientError("http://"), NO, True, False),
    (aiohttp.NonHttpUrlClientError("ftp://example.com"), NO, True, False),
    (aiohttp.InvalidUrlRedirectClientError("http://"), NO, False, False),
    (aiohttp.NonHttpUrlRedirectClientError("ftp://example.com"), NO, False, False),
    (aiohttp.TooManyRedirects(INFO, ()), NO, False, False),
    (FailFastError(CircuitBreaker("shop")), NO, False, False),
    (asyncio.CancelledError(), NO, False, False),
    (RuntimeError("Session is closed"), NO, False, False),
    (aiohttp.ClientConnectionError("Connector is closed"), NO, True, False),
    (TypeError("no such argument"), NO, False, False),
    (UnicodeEncodeError("idna", "x", 0, 1, "label too long"), NO, False, False),
    (
        raised_from(aiohttp.ClientConnectionError("body"), ZeroDivisionError()),
        NO,
        False,
        False,
    ),
    (
        raised_from(aiohttp.ClientConnectionError("body"), OSError(32, "pipe")),
        MAYBE,
        False,
        False,
    ),
    (aiohttp.ClientConnectionError("Connection closed"), MAYBE, False, False),
    (TemporaryError(), MAYBE, False, False),
    (aiohttp.ServerDisconnectedError(), MAYBE, False, False),
    (aiohttp.ClientConnectionResetError(), MAYBE, False, False),
    (aiohttp.ClientOSError(errno.ECONNRESET, "reset"), MAYBE, False, False),
    (aiohttp.ClientOSError(errno.ETIMEDOUT, "timed out"), MAYBE, False, True),
    (aiohttp.ClientResponseError(INFO, (), status=400), MAYBE, False, False),
    (aiohttp.ClientPayloadError(), MAYBE, False, False),
    (aiohttp.ServerTimeoutError(), MAYBE, False, True),
    (aiohttp.SocketTimeoutError(), MAYBE, False, True),
    (ResponseTimeoutError(), MAYBE, False, True),
    (TimeoutError(), MAYBE, False, True),
    (OSError(5, "input/output"), MAYBE, False, False),
    (Exception(), MAYBE, False, False),
]


def name(value):
    return type(value).__name__ if isinstance(value, BaseException) else None


@pytest.mark.parametrize(
    ("cause", "safety", "unprocessed", "timeout"), FAILURES, ids=name
)
def test_failure_is_judged(cause, safety, unprocessed, timeout):
    """Each kind of failure gets the three answers that strategies build on."""
    assert safety is retry_safety(cause)
    assert unprocessed is is_unprocessed(cause)
    assert timeout is is_timeout(cause)


@pytest.mark.skipif(
    not hasattr(aiohttp, "UploadAbortedError"), reason="new in aiohttp 3.14"
)
def test_an_upload_that_the_caller_aborted_is_not_sent_again():
    """Who aborts an upload does not want it repeated."""
    assert NO is retry_safety(aiohttp.UploadAbortedError())


def test_no_failure_is_neither_timeout_nor_unprocessed():
    """A strategy may ask about its ``cause`` without looking whether there is one."""
    assert not is_timeout(None)
    assert not is_unprocessed(None)


@pytest.mark.parametrize(
    "cause",
    [
        aiohttp.ClientConnectorError(KEY, OSError(111, "refused")),
        aiohttp.ConnectionTimeoutError(),
        aiohttp.ClientHttpProxyError(INFO, (), status=503),
    ],
    ids=name,
)
def test_nothing_is_unprocessed_after_a_redirect(cause):
    """The server that redirected has carried the request out, say a POST."""
    mark_redirected(cause)

    assert not is_unprocessed(cause)
    assert MAYBE is retry_safety(cause)


def test_a_redirect_to_a_bad_certificate_stays_permanent():
    """A redirect makes a hopeless failure no better."""
    cause = aiohttp.ClientConnectorCertificateError(KEY, ssl.CertificateError("no"))
    mark_redirected(cause)

    assert NO is retry_safety(cause)
    assert not is_unprocessed(cause)


@pytest.mark.parametrize(
    "error", [UnprocessedRequestError, FailFastError, ResponseTimeoutError]
)
def test_errors_are_those_of_aiohttp(error):
    """``except aiohttp.ClientError`` around existing code goes on working."""
    assert issubclass(error, aiohttp.ClientError)


def test_the_deadline_is_a_timeout():
    """``except asyncio.TimeoutError`` around existing code goes on working."""
    assert issubclass(ResponseTimeoutError, asyncio.TimeoutError)
    assert issubclass(ResponseTimeoutError, aiohttp.ServerTimeoutError)


@pytest.mark.parametrize(
    ("retry_in", "message"),
    [
        (None, "circuit breaker 'shop' is open"),
        (2.5, "circuit breaker 'shop' is open, next trial in 2.500 s"),
        (0.0, "circuit breaker 'shop' is open, next trial in 0.000 s"),
    ],
)
def test_an_open_circuit_says_when_it_may_be_tried(retry_in, message):
    """The error names the circuit and when to come back."""
    breaker = CircuitBreaker("shop")
    error = FailFastError(breaker, retry_in)

    assert message == str(error)
    assert breaker is error.circuit_breaker
    assert retry_in == error.retry_in


def test_bad_arguments_have_one_form():
    """Name, value and condition stand where they always stand."""
    error = bad_argument("delay", "1", "a number")

    assert isinstance(error, ValueError)
    assert "delay: '1' (expected: a number)" == str(error)


@pytest.mark.parametrize(
    ("value", "finite"),
    [
        (0, True),
        (-1.5, True),
        (1e308, True),
        (10**400, False),
        (float("inf"), False),
        (float("nan"), False),
        (True, False),
        ("1", False),
        (None, False),
    ],
)
def test_finite_numbers_are_told_from_the_rest(value, finite):
    """Whatever is passed, the answer comes without an error."""
    assert finite is is_finite(value)
