"""Failures and answers are sorted by whether a retry may help."""

import aiohttp
import pytest
from aiohttp.http import HttpProcessingError
from botocore.retries.standard import ThrottledRetryableChecker
from calls import begin, begin_body, end, end_body
from chains import bad_argument
from multidict import CIMultiDict
from yarl import URL

from aioretry_smithy import (
    CircuitBreaker,
    FailFastError,
    HttpRequest,
    UnprocessedRequestError,
)
from aioretry_smithy._retry.classify import (
    THROTTLING_CODES,
    TIMEOUT_CODES,
    TRANSIENT_CODES,
    classify,
)
from aioretry_smithy.smithy import (
    DEFAULT_CLASSIFIERS,
    ErrorKind,
    Failure,
    RetryAction,
    RetryInfo,
    only_idempotent,
)

INFO = aiohttp.RequestInfo(URL("http://localhost/"), "GET", CIMultiDict())
NOTHING = {"is_throttling_error": False, "is_timeout_error": False}
THROTTLING = NOTHING | {"is_throttling_error": True}
TIMEOUT = NOTHING | {"is_timeout_error": True}

UNPROCESSED = [
    UnprocessedRequestError("busy"),
    aiohttp.ClientConnectorError(None, OSError(111, "refused")),
]
CONNECTION_FAILURES = [
    *UNPROCESSED,
    aiohttp.ServerDisconnectedError(),
    aiohttp.ClientOSError(104, "reset"),
    aiohttp.ClientPayloadError("cut"),
    ConnectionResetError(),
    OSError(113, "no route"),
]
TIMEOUTS = [
    TimeoutError(),
    aiohttp.SocketTimeoutError(),
    aiohttp.ConnectionTimeoutError(),
    OSError(110, "timed out"),
]
PERMANENT = [
    aiohttp.InvalidURL("http://"),
    aiohttp.TooManyRedirects(None, ()),
    aiohttp.ServerFingerprintMismatch(b"", b"", "x", 1),
    FailFastError(CircuitBreaker("x"), 1.0),
    RuntimeError("Session is closed"),
    TypeError("bad argument"),
]
OTHER_SERVER_ERRORS = [501, 505, 507, 509, 511, 599]
CLIENT_ERRORS = [400, 401, 403, 404, 409, 425, 499]


class OwnError(Exception):
    """An error with whatever attributes a test gives it."""

    def __init__(self, **attributes):
        super().__init__("own")
        vars(self).update(attributes)


def failed(
    status=None, *, headers=None, cause=None, code=None, method="GET", sent=None
):
    """Make what came of an attempt: a response, or an exception."""
    request = HttpRequest(method, "http://localhost/", headers=sent)
    ctx = begin(request).derive(request)
    if status is not None:
        begin_body(ctx, status, headers=headers)
        if cause is not None:
            end_body(ctx, 0, cause)
    elif cause is not None:
        end(ctx, cause)
    return Failure(ctx, cause, code)


def came(outcome, **request):
    """Make what came of an attempt from a status or an exception."""
    if isinstance(outcome, int):
        return failed(outcome, **request)
    return failed(cause=outcome, **request)


def verdict(error):
    """Return whether a retry is safe, what kind of error it is, and whose fault."""
    return error.is_retry_safe, {name: getattr(error, name) for name in NOTHING}


def flags(error):
    """Return what kind of error it is."""
    return verdict(error)[1]


def named(value):
    """Name a failure in the report of a test."""
    return type(value).__name__ if isinstance(value, Exception) else None


@pytest.mark.parametrize(
    ("status", "safe", "kind", "fault"),
    [
        # The six are those after which another attempt may well succeed.
        *((status, True, NOTHING, "server") for status in (500, 502, 503)),
        (504, True, TIMEOUT, "server"),
        (408, True, TIMEOUT, "client"),
        (429, True, THROTTLING, "client"),
        # Their fault is the server's, which by itself would allow a retry.
        *((status, False, NOTHING, "server") for status in OTHER_SERVER_ERRORS),
        # Nobody can tell, and nothing is retried that nobody can tell about.
        *((status, None, NOTHING, "client") for status in CLIENT_ERRORS),
        # A chain of the user's may be asked about them too.
        *((status, None, NOTHING, None) for status in (200, 202, 304, 399)),
    ],
)
async def test_statuses(status, safe, kind, fault):
    """Whether they are retried, as what, and whose fault they are."""
    error = classify(failed(status))

    assert (safe, kind) == verdict(error)
    assert (fault, status) == (error.fault, error.status)
    assert bool(safe) is RetryInfo.of(error).allows_retry


@pytest.mark.parametrize("cause", CONNECTION_FAILURES, ids=named)
async def test_connection_failures_are_retried(cause):
    """Also those after which the server may have done the work."""
    error = classify(failed(cause=cause))

    assert (True, NOTHING) == verdict(error)
    assert error.fault is error.status is None


@pytest.mark.parametrize("cause", TIMEOUTS, ids=named)
async def test_timeouts_are_retried_as_such(cause):
    """They are dearer to some strategies; it was the client that gave up."""
    error = classify(failed(cause=cause))

    assert (True, TIMEOUT) == verdict(error)
    assert "client" == error.fault


@pytest.mark.parametrize("cause", PERMANENT, ids=named)
async def test_permanent_failures_are_forbidden(cause):
    """They would fail in the same way, and cost quota."""
    error = classify(failed(cause=cause), (*DEFAULT_CLASSIFIERS, always_retry))

    assert error.is_retry_safe is False


@pytest.mark.parametrize("cause", [OwnError(), EOFError()], ids=named)
async def test_unknown_exceptions_are_left_open(cause):
    """They do not look like a connection that failed."""
    error = classify(failed(cause=cause))

    assert error.is_retry_safe is None
    assert not RetryInfo.of(error).allows_retry


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({"is_retry_safe": True}, NOTHING),
        ({"is_retry_safe": True, "is_throttling_error": True}, THROTTLING),
        ({"is_retry_safe": True, "is_timeout_error": True}, TIMEOUT),
        ({"is_throttling_error": True, "is_timeout_error": True}, THROTTLING),
        ({"is_timeout_error": True}, TIMEOUT),
        ({"fault": "server"}, NOTHING),
    ],
)
async def test_exception_that_allows_a_retry_is_believed(attributes, kind):
    """All the attributes, some, or the fault alone."""
    error = classify(failed(cause=OwnError(**attributes)))

    assert (True, kind) == verdict(error)
    assert attributes.get("fault") == error.fault


@pytest.mark.parametrize("kind", [RuntimeError, TimeoutError, aiohttp.InvalidURL])
@pytest.mark.parametrize("safe", [True, False])
async def test_exception_of_any_class_knows_better(kind, safe):
    """Its own word wins over its class, both ways."""
    cause = kind("x")
    cause.is_retry_safe = safe

    assert safe is classify(failed(cause=cause)).is_retry_safe


async def test_throttling_that_must_not_be_retried_still_counts():
    """The information goes to a rate limiter."""
    cause = OwnError(is_retry_safe=False, is_throttling_error=True)

    assert (False, THROTTLING) == verdict(classify(failed(cause=cause)))


@pytest.mark.parametrize("cause", [OwnError(is_retry_safe=True), TimeoutError()])
async def test_hint_of_an_exception_is_taken_over(cause):
    """Whether it allows the retry itself or looks like a failed connection."""
    cause.retry_after = 2.5

    assert 2.5 == classify(failed(cause=cause)).retry_after


@pytest.mark.parametrize(
    ("status", "safe", "kind"),
    [(503, True, NOTHING), (429, True, THROTTLING), (404, None, NOTHING)],
)
async def test_error_raised_for_a_status_is_judged_by_it(status, safe, kind):
    """A decorator that raises for 404 asks for no retry of 404."""
    cause = aiohttp.ClientResponseError(INFO, (), status=status)
    error = classify(failed(cause=cause))

    assert (safe, kind) == verdict(error)
    assert status == error.status


async def test_fault_of_the_client_goes_before_the_status():
    """Who raises a 503 and blames the request wants no retry."""
    cause = aiohttp.ClientResponseError(INFO, (), status=503)
    cause.fault = "client"

    assert classify(failed(cause=cause)).is_retry_safe is False


async def test_answer_that_cannot_be_read_is_a_failed_connection():
    """The status that aiohttp makes up for it is none."""
    cause = aiohttp.ClientResponseError(INFO, (), status=400)
    cause.__cause__ = HttpProcessingError(message="garbage")
    error = classify(failed(cause=cause))

    assert error.is_retry_safe is True
    assert error.status is error.fault is None


async def test_body_that_failed_does_not_hide_throttling():
    """The status came before it."""
    error = classify(failed(429, cause=aiohttp.ClientPayloadError("cut")))

    assert (True, THROTTLING) == verdict(error)


@pytest.mark.parametrize("status", [200, 404])
async def test_body_that_failed_is_retried_whatever_the_status(status):
    """The attempt failed, though the status is none to retry."""
    error = classify(failed(status, cause=TimeoutError()))

    assert (True, TIMEOUT) == verdict(error)
    assert "client" == error.fault


@pytest.mark.parametrize("status", [400, 403, 429, 502, 503, 509])
@pytest.mark.parametrize("code", sorted(THROTTLING_CODES))
async def test_throttling_codes_count_at_any_status(code, status):
    """The Rust SDK's RFC ties them to statuses; the SDKs of today do not."""
    error = classify(failed(status, code=code))

    assert (True, THROTTLING) == verdict(error)
    assert code == error.code


def test_throttling_codes_are_those_of_botocore():
    """A code that is added there is missing here."""
    theirs = ThrottledRetryableChecker._THROTTLED_ERROR_CODES

    assert {*theirs} == THROTTLING_CODES


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        *((code, TIMEOUT) for code in sorted(TIMEOUT_CODES)),
        *((code, NOTHING) for code in sorted(TRANSIENT_CODES)),
    ],
)
async def test_other_codes_that_are_known_count_at_any_status(code, kind):
    """S3 and AWS STS say with 400 that something did not answer in time."""
    assert (True, kind) == verdict(classify(failed(400, code=code)))


@pytest.mark.parametrize("code", ["ValidationException", "throttling", "Slow", ""])
async def test_other_codes_change_nothing(code):
    """They are names of classes, so their case counts."""
    error = classify(failed(400, code=code))

    assert error.is_retry_safe is None
    assert code == error.code


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "120"}, 120.0),
        ({"x-amz-retry-after": "1500"}, 1.5),
        ({"Retry-After": "soon"}, None),
        ({"x-amz-retry-after": "-100"}, None),
        ({"Retry-After": "99999999999"}, 1e10),
        (
            {
                "Retry-After": "Sun, 06 Nov 1994 08:49:47 GMT",
                "Date": "Sun, 06 Nov 1994 08:49:37 GMT",
            },
            10.0,
        ),
        ({}, None),
    ],
)
async def test_hint_of_the_headers_is_added_to_a_verdict(headers, seconds):
    """In either of the two headers."""
    assert seconds == classify(failed(503, headers=headers)).retry_after


@pytest.mark.parametrize("status", [200, 404, 501])
async def test_hint_of_the_headers_is_no_verdict(status):
    """A server that announces a pause does not ask for a retry."""
    error = classify(failed(status, headers={"Retry-After": "1"}))

    assert error.is_retry_safe is not True
    assert error.retry_after is None


@pytest.mark.parametrize("hint", [0.0, 1.0, 99.0])
async def test_hint_of_a_classifier_stands_above_the_headers(hint):
    """It may know what they mean; 0 is a hint too."""

    def hinting(failure, previous):
        return RetryAction.retry(retry_after=hint)

    failure = failed(503, headers={"Retry-After": "7"})

    assert hint == classify(failure, [hinting]).retry_after


async def test_later_verdict_refines_an_earlier_one():
    """It replaces the kind and keeps the hint, unless it has one of its own."""
    seen = []

    def answering(verdict):
        def classifier(failure, previous):
            seen.append(previous)
            return verdict

        return classifier

    hint = RetryAction.retry(retry_after=3.0)
    throttling = RetryAction.retry(ErrorKind.THROTTLING)
    timeout = RetryAction.retry(ErrorKind.TIMEOUT, retry_after=4.0)
    chain = map(answering, [hint, None, throttling, timeout])
    first, abstaining, second, third = chain
    two = classify(failed(503), [first, abstaining, second])
    three = classify(failed(503), [second, third])

    assert (THROTTLING, 3.0) == (flags(two), two.retry_after)
    assert (TIMEOUT, 4.0) == (flags(three), three.retry_after)
    assert [None, hint, hint, None, throttling] == seen


async def test_verdict_that_forbids_ends_the_chain():
    """Nobody behind it is asked."""

    def forbidding(failure, previous):
        return RetryAction.forbid()

    error = classify(failed(503), [forbidding, failing])

    assert error.is_retry_safe is False


async def test_throttling_that_is_forbidden_is_still_throttling():
    """A rate limiter would otherwise take it for a success."""
    failure = failed(429, headers={"Retry-After": "2"}, method="POST")
    error = classify(failure, (*DEFAULT_CLASSIFIERS, only_idempotent))

    assert (False, THROTTLING) == verdict(error)
    assert 2.0 == error.retry_after


@pytest.mark.parametrize(
    "outcome",
    [
        500,
        429,
        TimeoutError(),
        OwnError(is_throttling_error=True),
        OwnError(fault="server"),
    ],
)
async def test_what_nobody_judges_is_not_retried(outcome):
    """Neither a flag nor a fault brings in what was left out of the chain."""
    error = classify(came(outcome), ())

    assert error.is_retry_safe is not True
    assert not RetryInfo.of(error).allows_retry


@pytest.mark.parametrize("answer", [True, False, "retry", ErrorKind.THROTTLING])
async def test_classifier_that_answers_nonsense_is_told(answer):
    """Where the answer is read, not in the depths of a strategy."""
    with bad_argument("classifier", answer, "a RetryAction or None"):
        classify(failed(503), [lambda failure, previous: answer])


@pytest.mark.parametrize(
    ("outcome", "method", "headers", "expected"),
    [
        *((503, method, None, None) for method in ("GET", "PUT", "DELETE")),
        *((503, method, None, RetryAction.forbid()) for method in ("POST", "PATCH")),
        (TimeoutError(), "POST", None, RetryAction.forbid()),
        (aiohttp.ServerDisconnectedError(), "POST", None, RetryAction.forbid()),
        (503, "POST", {"Idempotency-Key": "1"}, None),
        *((cause, "POST", None, None) for cause in UNPROCESSED),
    ],
)
async def test_only_idempotent(outcome, method, headers, expected):
    """It forbids what may have been carried out once, and allows nothing."""
    failure = came(outcome, method=method, sent=headers)

    assert expected == only_idempotent(failure, None)


async def test_error_comes_from_the_exception():
    """A strategy may look at it, and a traceback shows it."""
    cause = TimeoutError()

    assert cause is classify(failed(cause=cause)).__cause__
    assert None is classify(failed(503)).__cause__


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        ({"status": 503}, "status 503"),
        ({"status": 400, "code": "SlowDown"}, "status 400, code SlowDown"),
        ({"cause": TimeoutError()}, "TimeoutError"),
        (
            {"cause": aiohttp.InvalidURL("http://me:secret@localhost/")},
            "InvalidURL: http://****@localhost/",
        ),
    ],
)
async def test_error_says_what_happened(failure, message):
    """It is chained to what ends retries, so it shows no secrets."""
    assert message == str(classify(failed(**failure)))


def always_retry(failure, previous):
    return RetryAction.retry()


def failing(failure, previous):
    return 1 / 0
