"""Whether a failed attempt may be sent again, judged by its exception."""

import asyncio
import errno
import ssl

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.http import HttpProcessingError
from calls import INFO, raised
from chains import raised_from, telling

from aioretry_smithy import (
    CircuitBreaker,
    FailFastError,
    ResponseTimeoutError,
    RetrySafety,
    UnprocessedRequestError,
    is_timeout,
    is_unprocessed,
    peel,
    retry_safety,
)
from aioretry_smithy._failures.failure import (
    copy_marks,
    failure_of,
    judge,
    note_wait_in_pool,
    was_in_pool,
    where_passed,
)

YES, MAYBE, NO = RetrySafety.YES, RetrySafety.MAYBE, RetrySafety.NO
KEY = ConnectionKey("example.com", 443, True, True, None, None, None)


def grouped(error):
    return ExceptionGroup("one", [error])


class SemaphoreError(OSError):
    """What Windows says of a peer that does not answer; it has no ``errno``."""

    winerror = 121


class TemporaryError(RuntimeError):
    """An error of an application, which happens to derive from a built-in one."""


FAILURES = [
    # failure, may be sent again, the server cannot have seen it, time ran out
    (aiohttp.ClientConnectorError(KEY, OSError(111, "refused")), YES, True, False),
    (aiohttp.ClientConnectorDNSError(KEY, OSError(1, "unknown")), YES, True, False),
    (aiohttp.ClientConnectorSSLError(KEY, ssl.SSLError(1)), YES, True, False),
    (aiohttp.ClientProxyConnectionError(KEY, OSError(111, "no")), YES, True, False),
    (aiohttp.ClientHttpProxyError(INFO, (), status=503), YES, True, False),
    (aiohttp.ConnectionTimeoutError(), YES, True, True),
    (aiohttp.ClientConnectorError(KEY, OSError(errno.ETIMEDOUT, "")), YES, True, True),
    (aiohttp.ClientConnectorError(KEY, SemaphoreError(22, "")), YES, True, True),
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
    (
        raised_from(
            aiohttp.ClientResponseError(INFO, (), status=400),
            HttpProcessingError(message="garbage"),
        ),
        MAYBE,
        False,
        False,
    ),
    (aiohttp.ClientPayloadError(), MAYBE, False, False),
    (aiohttp.ServerTimeoutError(), MAYBE, False, True),
    (aiohttp.SocketTimeoutError(), MAYBE, False, True),
    (ResponseTimeoutError(), MAYBE, False, True),
    (TimeoutError(), MAYBE, False, True),
    (OSError(5, "input/output"), MAYBE, False, False),
    (Exception(), MAYBE, False, False),
    (telling(Exception(), is_retry_safe=True), YES, False, False),
    (telling(RuntimeError(), is_retry_safe=True, fault="client"), YES, False, False),
    (telling(aiohttp.ConnectionTimeoutError(), is_retry_safe=False), NO, True, True),
    (telling(Exception(), fault="client"), NO, False, False),
    (telling(Exception(), fault="server"), MAYBE, False, False),
    (
        telling(Exception(), fault="client", is_throttling_error=True),
        MAYBE,
        False,
        False,
    ),
    (telling(Exception(), is_retry_safe="garbled", fault=1), MAYBE, False, False),
    (grouped(aiohttp.ConnectionTimeoutError()), YES, True, True),
    (grouped(grouped(aiohttp.InvalidURL("http://"))), NO, True, False),
    (ExceptionGroup("two", [TimeoutError(), TimeoutError()]), MAYBE, False, False),
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


@pytest.mark.parametrize(
    ("value", "is_shown_as"), [(None, "None"), (503, "503"), ("timeout", "'timeout'")]
)
def test_safety_of_what_is_no_exception_is_refused(value, is_shown_as):
    """A strategy that asks without looking whether there is a cause is told so."""
    with pytest.raises(ValueError) as caught:
        retry_safety(value)

    assert f"cause: {is_shown_as} (expected: an exception)" == str(caught.value)


@pytest.mark.parametrize("question", [is_timeout, is_unprocessed])
@pytest.mark.parametrize("value", [503, "timeout", TimeoutError])
def test_questions_about_no_exception_are_refused(question, value):
    """Such as one about a status, or about a class."""
    expected = r"^cause: .* \(expected: an exception, or None\)$"
    with pytest.raises(ValueError, match=expected):
        question(value)


@pytest.mark.skipif(
    not hasattr(aiohttp, "UploadAbortedError"), reason="new in aiohttp 3.14"
)
def test_an_upload_that_the_caller_aborted_is_not_sent_again():
    """A caller that aborts an upload does not want it repeated."""
    assert NO is retry_safety(aiohttp.UploadAbortedError())


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
    judge(cause).reached_server = True

    assert not is_unprocessed(cause)
    assert MAYBE is retry_safety(cause)


def test_a_redirect_to_a_bad_certificate_stays_permanent():
    """A redirect makes a hopeless failure no better."""
    cause = aiohttp.ClientConnectorCertificateError(KEY, ssl.CertificateError("no"))
    judge(cause).reached_server = True

    assert NO is retry_safety(cause)
    assert not is_unprocessed(cause)


@pytest.mark.parametrize(
    "cause",
    [
        aiohttp.ConnectionTimeoutError(),
        FileNotFoundError(),
        telling(Exception(), is_retry_safe=True),
    ],
    ids=name,
)
def test_what_the_callers_own_object_raised_is_permanent(cause):
    """No request was sent, whatever the class of the exception says."""
    judge(cause).raised_by_caller = True

    assert NO is retry_safety(cause)
    assert NO is retry_safety(grouped(cause))


def test_groups_of_one_are_peeled():
    """The exception inside is what happened; a group of several is not one of them."""
    cause = TimeoutError()
    several = ExceptionGroup("two", [cause, cause])

    assert cause is peel(cause)
    assert cause is peel(grouped(grouped(cause)))
    assert several is peel(grouped(several))


class OddError(ConnectionError):
    """A failure of somebody else, with a name that aiohttp has, too."""

    @property
    def os_error(self):
        raise RuntimeError


def test_only_what_aiohttp_raises_is_looked_into():
    """Attributes of other failures are not asked for, since they may raise."""
    assert is_timeout(OddError(errno.ETIMEDOUT, "timed out"))
    assert not is_timeout(OddError(errno.ECONNRESET, "reset"))


def test_text_of_aiohttp_is_replaced_once():
    """It names the server, which had no part in it."""
    cause = aiohttp.ConnectionTimeoutError("Connection timeout to host http://a/")
    note_wait_in_pool(cause)
    note_wait_in_pool(cause)

    assert "no free connection in the pool in time, for http://a/" == str(cause)
    assert "pool" == failure_of(cause).queue


def test_words_that_somebody_chose_stay():
    """Only aiohttp's own texts are replaced."""
    cause = TimeoutError("mine")
    other = aiohttp.ConnectionTimeoutError("other words")
    note_wait_in_pool(cause)
    note_wait_in_pool(other)

    assert "mine" == str(cause)
    assert "other words" == str(other)
    assert "in the pool's queue" == where_passed(cause)


def test_queue_of_a_limit_is_another_one():
    """It has words of its own."""
    cause = TimeoutError()
    judge(cause).queue = "limit"

    assert "limit" == failure_of(cause).queue
    assert not was_in_pool(cause)
    assert "" == where_passed(cause)
    assert not was_in_pool(None)


def test_error_that_stands_for_it_says_the_same():
    """A deadline that is named in its place was in the same queue."""
    cause, error = TimeoutError(), ResponseTimeoutError()
    note_wait_in_pool(cause)
    copy_marks(error, cause)

    assert was_in_pool(error)


PROXY = aiohttp.ClientHttpProxyError


class Bare(aiohttp.ClientResponseError):
    """A class of somebody else, whose objects have next to nothing."""

    def __init__(self):
        pass


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (raised(404), NO),
        (raised(401), NO),
        (raised(501), MAYBE),
        (raised(503), MAYBE),
        (raised(429), MAYBE),
        (raised(408), MAYBE),
        (raised(999), NO),
        (raised(404, kind=aiohttp.ContentTypeError), NO),
        (raised(200, kind=aiohttp.ContentTypeError), MAYBE),
        (raised(403, kind=aiohttp.WSServerHandshakeError), NO),
        (raised(302, kind=aiohttp.WSServerHandshakeError), MAYBE),
        (raised(0), MAYBE),
        (raised_from(raised(404), KeyError("code")), NO),
        (raised_from(raised(400), HttpProcessingError(code=400)), MAYBE),
        (ExceptionGroup("one", [raised(404)]), NO),
        (ExceptionGroup("two", [raised(404), raised(404)]), MAYBE),
        (Bare(), MAYBE),
        (aiohttp.ClientResponseError(INFO, (), status="404"), MAYBE),
        (raised(407, kind=PROXY), NO),
        (raised(403, kind=PROXY), NO),
        (raised(302, kind=PROXY), NO),
        (raised(502, kind=PROXY), YES),
        (raised(503, kind=PROXY), YES),
        (raised(429, kind=PROXY), YES),
    ],
    ids=lambda value: type(value).__name__,
)
def test_safety_is_that_of_the_status(cause, expected):
    """A final status would be the same again; a proxy has passed nothing on."""
    assert expected == retry_safety(cause)


@pytest.mark.parametrize("status", [403, 407, 503])
def test_server_has_seen_nothing_of_what_a_proxy_refused(status):
    """Which is no reason to ask again."""
    assert True is is_unprocessed(raised(status, kind=PROXY))
