"""Failures as classifiers see them, and the answers that these may give."""

from __future__ import annotations

import asyncio
import dataclasses
import math

import aiohttp
import pytest
from aiohttp.http import HttpProcessingError
from calls import begin_body, end, end_body, ended
from chains import bad_argument, set_time_of_day
from multidict import CIMultiDict
from yarl import URL

from aioretry_smithy.smithy import ErrorKind, Failure, RetryAction

INFO = aiohttp.RequestInfo(URL("http://localhost/"), "GET", CIMultiDict())


def test_verdict_is_transient_unless_it_says_so():
    """The one word that most classifiers need."""
    assert RetryAction.retry(ErrorKind.TRANSIENT) == RetryAction.retry()
    assert None is RetryAction.retry().retry_after


def test_verdict_that_forbids_has_no_kind():
    """It equals no verdict that allows."""
    assert None is RetryAction.forbid().kind
    assert RetryAction.forbid() != RetryAction.retry()


@pytest.mark.parametrize("kind", ["throttling", 1, True, None])
def test_kind_is_one_of_three(kind):
    """A word in its place would be compared by identity, and never be equal."""
    with bad_argument("kind", kind, "an ErrorKind"):
        RetryAction.retry(kind)


@pytest.mark.parametrize("hint", [-0.1, math.nan, math.inf, True, "1"])
def test_hint_is_a_time_that_can_be_waited(hint):
    """It would otherwise fail in the middle of a call, or be dropped in silence."""
    with bad_argument("retry_after", hint, "finite and >= 0, or None"):
        RetryAction.retry(retry_after=hint)


def test_verdict_cannot_be_changed():
    """One verdict may answer any number of calls."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        RetryAction.retry().retry_after = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    "text",
    [
        "RetryAction.forbid()",
        "RetryAction.retry(ErrorKind.TRANSIENT)",
        "RetryAction.retry(ErrorKind.TIMEOUT, retry_after=0.0)",
    ],
)
def test_verdict_shows_how_it_is_made(text):
    """A hint of 0 is a hint."""
    assert text == repr(eval(text))


async def test_status_and_headers_are_those_of_the_response():
    """Names of headers in any case."""
    failure = Failure(ended(503, headers={"X-Quota": "7"}))

    assert 503 == failure.status
    assert "7" == failure.headers["x-quota"]
    assert None is failure.cause
    assert None is failure.code


async def test_exception_has_neither_status_nor_headers():
    """So that a classifier may look at headers without asking first."""
    cause = TimeoutError()
    failure = Failure(ended(cause=cause), cause)

    assert None is failure.status
    assert {} == dict(failure.headers)
    assert None is failure.retry_after


async def test_headers_are_a_copy_nobody_can_change():
    """Classifiers look; the response goes to the caller."""
    with pytest.raises(TypeError):
        Failure(ended(503)).headers["x"] = "y"


@pytest.mark.parametrize("status", [400, 503])
async def test_error_raised_for_a_status_stands_for_its_response(status):
    """A decorator may have turned the response into an exception."""
    headers = CIMultiDict({"Retry-After": "3"})
    cause = aiohttp.ClientResponseError(INFO, (), status=status, headers=headers)
    failure = Failure(ended(cause=cause), cause)

    assert status == failure.status
    assert 3.0 == failure.retry_after


@pytest.mark.parametrize("status", [0, 200, 302, 399])
async def test_error_with_a_status_that_is_none_stands_for_nothing(status):
    """An endless redirect says 0, a body of the wrong type 200."""
    cause = aiohttp.ClientResponseError(INFO, (), status=status)

    assert None is Failure(ended(cause=cause), cause).status


async def test_status_that_aiohttp_made_up_is_none():
    """It says 400 when it cannot read what the server sent."""
    cause = aiohttp.ClientResponseError(INFO, (), status=400)
    cause.__cause__ = HttpProcessingError(message="garbage")

    assert None is Failure(ended(cause=cause), cause).status


async def test_body_that_failed_leaves_the_status():
    """The answer came, its body did not."""
    cause = aiohttp.ClientPayloadError("cut")
    ctx = ended(503, headers={"Retry-After": "2"})
    end_body(ctx, 0, cause)
    end(ctx, cause)
    failure = Failure(ctx, cause)

    assert 503 == failure.status
    assert 2.0 == failure.retry_after


async def test_hint_without_a_date_counts_from_when_the_response_came():
    """Not from when the call began, nor from the year 1970."""
    # Sun, 06 Nov 1994 08:49:37 GMT
    set_time_of_day(784111777.0)
    ctx = ended()
    await asyncio.sleep(3.0)
    hint = {"Retry-After": "Sun, 06 Nov 1994 08:49:47 GMT"}
    begin_body(ctx, 503, headers=hint)

    assert 7.0 == pytest.approx(Failure(ctx).retry_after)


@pytest.mark.parametrize("digits", ["99999999999", "9" * 400])
async def test_hint_of_many_digits_stays_a_number(digits):
    """Infinity would be taken for no hint at all."""
    assert 1e10 == Failure(ended(503, headers={"Retry-After": digits})).retry_after
