"""Strategies that say which outcomes are failures for a circuit breaker."""

import asyncio
import ssl

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.http import HttpProcessingError
from calls import ended
from chains import raised_from, telling
from multidict import CIMultiDict, CIMultiDictProxy
from pairs import each_pair
from yarl import URL

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerStrategy,
    FailFastError,
    ResponseTimeoutError,
    UnprocessedRequestError,
)
from aioretry_smithy._failures.failure import judge

URL_ = URL("http://localhost/")
KEY = ConnectionKey("localhost", 80, False, True, None, None, None)
INFO = aiohttp.RequestInfo(URL_, "GET", CIMultiDictProxy(CIMultiDict()), URL_)


def verdict(*, status=None, cause=None):
    """Ask the default strategy about an outcome."""
    strategy = CircuitBreakerStrategy.on_server_error_status()
    return strategy.should_report_as_success(ended(status, cause=cause), cause)


@pytest.mark.parametrize("status", [101, 200, 204, 304, 404, 408, 429, 499, 600, 999])
async def test_a_status_that_is_not_5xx_is_a_success(status):
    """The server works, even if it does not like the request."""
    assert True is verdict(status=status)


@pytest.mark.parametrize("status", [500, 501, 503, 599])
async def test_a_server_error_is_a_failure(status):
    """A server that says that it is broken is."""
    assert False is verdict(status=status)


async def test_an_unknown_status_is_not_counted():
    """Where nothing is known, nothing is said about the server."""
    assert None is verdict()


@pytest.mark.parametrize(
    "cause",
    [
        TimeoutError(),
        ConnectionResetError(),
        OSError(),
        aiohttp.ServerDisconnectedError(),
        aiohttp.SocketTimeoutError(),
        aiohttp.ConnectionTimeoutError(),
        aiohttp.ClientPayloadError(),
        aiohttp.ClientOSError(104, "reset"),
        aiohttp.ClientConnectorError(KEY, OSError(111, "refused")),
        aiohttp.ClientConnectorCertificateError(KEY, ssl.CertificateError()),
        aiohttp.ServerFingerprintMismatch(b"a", b"b", "localhost", 80),
        raised_from(
            aiohttp.ClientResponseError(INFO, (), status=400),
            HttpProcessingError(message="garbage"),
        ),
        aiohttp.TooManyRedirects(INFO, ()),
        aiohttp.InvalidUrlRedirectClientError("http://"),
        aiohttp.NonHttpUrlRedirectClientError("ftp://localhost/"),
        ResponseTimeoutError(),
        Exception("of an application"),
        type("OwnError", (ValueError,), {})(),
    ],
    ids=lambda cause: type(cause).__name__,
)
async def test_an_exception_is_a_failure(cause):
    """A failure that may be the server's doing counts against it."""
    assert False is verdict(cause=cause)


@pytest.mark.parametrize(
    "cause",
    [
        asyncio.CancelledError(),
        FailFastError(CircuitBreaker("inner")),
        UnprocessedRequestError("too many in flight"),
        aiohttp.InvalidURL("http://"),
        aiohttp.InvalidUrlClientError("http://"),
        aiohttp.NonHttpUrlClientError("ftp://localhost/"),
        TypeError("no such argument"),
        ValueError("bad argument"),
        RuntimeError("Session is closed"),
        KeyError("in a decorator"),
        ZeroDivisionError(),
        aiohttp.ClientConnectionError("Connector is closed"),
        raised_from(aiohttp.ClientConnectionError("body"), KeyError("in the body")),
    ],
    ids=lambda cause: type(cause).__name__,
)
async def test_what_says_nothing_about_the_server_is_not_counted(cause):
    """Our refusals and the caller's mistakes neither open nor close a circuit."""
    assert None is verdict(cause=cause)


async def test_what_the_callers_own_object_raised_is_not_counted():
    """A factory that fails on a bad certificate elsewhere tells nothing of the host."""
    cause = aiohttp.ClientConnectorCertificateError(KEY, ssl.CertificateError("no"))
    judge(cause).raised_by_caller = True

    assert None is verdict(cause=cause)
    assert None is verdict(cause=ExceptionGroup("tasks", [cause]))


@each_pair(
    case=[
        (Exception("declined"), None, False),
        (Exception("broken"), "server", False),
        (Exception("bad order"), "client", None),
        (aiohttp.ServerDisconnectedError(), None, False),
        (UnprocessedRequestError("busy"), None, None),
        (RuntimeError("Session is closed"), None, None),
    ],
    is_retry_safe=[True, False, None],
    group=[False, True],
    ids=repr,
)
async def test_whether_a_retry_is_safe_says_nothing_about_the_server(
    case, is_retry_safe, group
):
    """A server that must not be asked again is down all the same."""
    error, fault, expected = case
    cause = telling(error, fault=fault, is_retry_safe=is_retry_safe)
    if group:
        cause = ExceptionGroup("tasks", [cause])

    assert expected is verdict(cause=cause)


def test_the_default_strategy_is_one_object():
    """It has no state, so all share it; its text is how to get it."""
    strategy = CircuitBreakerStrategy.on_server_error_status()

    assert strategy is CircuitBreakerStrategy.on_server_error_status()
    assert "CircuitBreakerStrategy.on_server_error_status()" == repr(strategy)
    with pytest.raises(AttributeError):
        strategy.status = 400


def test_a_strategy_has_to_decide():
    """A subclass without a verdict cannot be made."""
    with pytest.raises(TypeError):
        type("Undecided", (CircuitBreakerStrategy,), {})()
