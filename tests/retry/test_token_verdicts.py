"""What a Smithy strategy is told of a failure: by classifiers, bodies, exceptions."""

from __future__ import annotations

from traceback import walk_tb
from typing import Any
from unittest.mock import MagicMock

import aiohttp
import pytest
from chains import URL, chain, log_of, response_of, status_and_log, twice
from chains import retrying_session as session
from fake_responses import unending
from token_strategies import Plain, Refusing, available, standard

from aioretry_smithy import (
    RequestLog,
    RetryingClient,
    RetryStopReason,
    capture_logs,
    new_response,
    smithy,
)


def patience(failure, previous):
    return smithy.RetryAction.retry(retry_after=30.0)


@pytest.mark.usefixtures("draw")
async def test_hint_of_a_classifier_is_obeyed_in_full():
    """Like one of the headers; no longer than a call may take."""
    classifiers = (*smithy.DEFAULT_CLASSIFIERS, patience)
    log = await log_of(session([503, 200], standard(), classifiers=classifiers))

    first = log.children[0]
    assert (30.0, "retry_after") == (first.delay, first.delay_source)


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


async def test_retry_error_is_raised_on_request():
    """It comes from what the attempt failed with, and the response is closed."""
    strategy = standard(max_attempts=1)
    with capture_logs() as logs, pytest.raises(smithy.RetryError) as caught:
        await response_of(session([503], strategy, raise_retry_error=True))

    error = caught.value
    assert (503, error) == (error.__cause__.status, logs[0].response_cause)
    assert error is logs[0].retry_error
    assert logs[0] is RequestLog.of(error)
    # The frames of the strategy had the failure.
    *_, (last, _) = walk_tb(error.__traceback__)
    assert smithy.__name__ not in last.f_globals["__name__"]


@pytest.mark.parametrize("strategy", [Plain(), Refusing()])
async def test_retry_error_of_ones_own_strategy_gets_its_cause(strategy):
    """Also where the strategy raised it without one, or refused the first token."""
    last = aiohttp.ServerDisconnectedError()
    answers = [TimeoutError(), TimeoutError(), last]
    if isinstance(strategy, Refusing):
        answers = [last]
    with pytest.raises(smithy.RetryError) as caught:
        await response_of(session(answers, strategy, raise_retry_error=True))

    error = caught.value.__cause__
    assert isinstance(error, smithy.CallError)
    assert last is error.__cause__


async def test_retry_error_that_is_raised_twice_is_about_the_call_at_hand():
    """One exception object may serve for all calls."""
    shared = smithy.RetryError("no")

    class Thrifty(Plain):
        def refresh_retry_token_for_retry(self, **_):
            raise shared

    for status in (500, 502):
        with pytest.raises(smithy.RetryError) as caught:
            await response_of(session([status], Thrifty(), raise_retry_error=True))

        assert status == caught.value.__cause__.status


async def test_retry_error_keeps_the_cause_that_its_strategy_gave_it():
    """It may know better what it is about."""
    cause = KeyError("quota")

    class Explaining(Plain):
        def refresh_retry_token_for_retry(self, **_):
            raise smithy.RetryError("no") from cause

    with pytest.raises(smithy.RetryError) as caught:
        await response_of(session([503], Explaining(), raise_retry_error=True))

    assert cause is caught.value.__cause__


async def test_refusal_that_cannot_be_written_on_ends_the_call_all_the_same():
    """An exception of the user's, frozen and with a hint that breaks."""

    class StubbornError(smithy.RetryError):
        def __init__(self):
            pass

        @property
        def retry_after(self):
            raise KeyError

        def __setattr__(self, name, value):
            raise AttributeError(name)

    class Stubborn(Plain):
        def refresh_retry_token_for_retry(self, **_):
            raise StubbornError

    _, log = await status_and_log(session([503], Stubborn()))
    with pytest.raises(StubbornError):
        await response_of(session([503], Stubborn(), raise_retry_error=True))

    assert RetryStopReason.NO_RETRY == log.stop_reason


async def test_refusal_that_is_the_failure_itself_makes_no_circle():
    """A strategy may raise what it was given."""

    class Echo(Plain):
        def refresh_retry_token_for_retry(self, *, token_to_renew, error):
            raise error.__cause__

    class Busy(smithy.RetryError):
        is_retry_safe = True

    busy = Busy()
    with pytest.raises(Busy):
        await response_of(session([busy], Echo(), raise_retry_error=True))

    assert busy.__cause__ is None


async def test_refusal_in_the_log_keeps_nothing_of_the_call_alive():
    """Its traceback would hold the body and the response."""
    _, log = await status_and_log(session([404], standard()))
    refused, _ = log.retry_error, None

    assert refused.__traceback__ is None
    assert getattr(refused.__context__, "__traceback__", None) is None


async def test_refusal_of_one_pass_is_not_that_of_the_next():
    """A decorator outside may send a request twice; the log shows the last pass."""
    builder = chain([404, 200], RetryingClient.new_decorator(standard()), twice)
    status, log = await status_and_log(builder.build())

    assert (200, None, None) == (status, log.stop_reason, log.retry_error)


async def test_retry_error_is_not_raised_for_what_was_never_worth_a_retry():
    """A 404 stays a response."""
    status, log = await status_and_log(
        session([404], standard(), raise_retry_error=True)
    )

    assert 404 == status
    assert isinstance(log.retry_error, smithy.RetryError)


async def test_connection_is_free_before_the_error_is_raised():
    """Nobody gets the response whose body is still to come."""
    given_up = []

    def answer(ctx, request):
        response: Any = new_response(request, 503, body=b"busy")
        response._connection = MagicMock()
        given_up.append(response)
        return response

    strategy = standard(max_attempts=1)
    with pytest.raises(smithy.RetryError):
        await response_of(session([answer], strategy, raise_retry_error=True))

    assert given_up[0].connection is None
