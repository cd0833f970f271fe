"""What a Smithy strategy is told of a failure: by classifiers, bodies, exceptions."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from chains import URL, log_of, status_and_log
from chains import retrying_session as session
from fake_responses import unending
from token_strategies import available, standard

from aioretry_smithy import (
    RequestLog,
    RetryStopReason,
    client_decorator,
    new_response,
    smithy,
)

IDEMPOTENT = (*smithy.DEFAULT_CLASSIFIERS, smithy.only_idempotent)


def patience(failure, previous):
    return smithy.RetryAction.retry(retry_after=30.0)


def conflicts(failure, previous):
    return smithy.RetryAction.retry() if failure.status == 409 else None


@pytest.mark.usefixtures("draw")
async def test_hint_of_a_classifier_is_obeyed_in_full():
    """Like one of the headers; no longer than a call may take."""
    classifiers = (*smithy.DEFAULT_CLASSIFIERS, patience)
    log = await log_of(session([503, 200], standard(), classifiers=classifiers))

    first = log.children[0]
    assert (30.0, "retry_after") == (first.delay, first.delay_source)


async def test_classifiers_of_ones_own_refine_the_verdict():
    """Here a 409 is worth a retry."""
    classifiers = [*smithy.DEFAULT_CLASSIFIERS, conflicts]
    log = await log_of(session([409, 200], standard(), classifiers=classifiers))

    assert (200, 2) == (log.response_status, log.total_attempts)


async def test_classifier_keeps_retries_to_idempotent_requests():
    """A ready-made one, for services that do not recognise a repeated request."""
    client = session([503], standard(), classifiers=IDEMPOTENT)
    log = await log_of(client, method="POST", data=b"x")

    assert RetryStopReason.NO_RETRY == log.stop_reason


async def test_error_code_is_not_waited_for_longer_than_the_attempt_has():
    """A body that stalls is no reason to be late."""

    def stalling(ctx, request):
        return unending(request, 503, headers={"Content-Type": "text/xml"})

    client = session([stalling, 200], standard(), attempt_timeout=0.25)
    _, log = await status_and_log(client)

    assert 0.75 == log.duration


async def test_error_code_in_a_body_throttles_and_the_body_is_still_there():
    """A 400 of an AWS service that means too many requests."""
    body = b'{"__type": "com.amazonaws#ThrottlingException"}'
    answer = (400, {"Content-Type": "application/x-amz-json-1.0"}, body)
    strategy = standard(max_attempts=2)
    async with (
        session([answer, answer], strategy) as client,
        client.get(URL) as response,
    ):
        log = RequestLog.of(response)

        assert (400, body) == (response.status, await response.read())
    assert 2.0 == log.children[0].delay
    assert 495 == available(strategy)


async def test_body_is_read_inside_the_attempt_on_request():
    """buffer_response means the same as with the other strategies."""

    class Cut(aiohttp.StreamReader):
        def __init__(self):
            super().__init__(None, 1, loop=asyncio.get_running_loop())
            self.set_exception(aiohttp.ClientPayloadError("cut"))

    def cut(ctx, request):
        response = new_response(request, 200)
        response.content = Cut()
        return response

    body = b'{"__type": "Throttling"}'
    throttled = (400, {"Content-Type": "application/json"}, body)
    strategy = standard(max_attempts=4)
    answers = [cut, throttled, (200, {}, b"fine")]
    client = session(answers, strategy, buffer_response=True)
    status, log = await status_and_log(client)

    assert (200, 3) == (status, log.total_attempts)
    assert [0.5, 2.0, None] == [child.delay for child in log.children]


@pytest.mark.usefixtures("draw")
async def test_exception_that_knows_about_retries_is_believed():
    """A decorator inside may raise an error that carries the attributes itself."""

    class BusyError(Exception):
        is_retry_safe = True
        is_throttling_error = True
        retry_after = 3.0

    @client_decorator
    async def raising(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        if response.status == 418:
            response.close()
            raise BusyError
        return response

    strategy = standard()
    _, log = await status_and_log(session([418, 200], strategy, raising))

    assert (3.0, 2) == (log.children[0].delay, log.total_attempts)
    assert 500 == available(strategy)
