"""The scripted transport: every kind of answer, and the manners of a real leaf."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    DecoratingClient,
    HttpClient,
    HttpRequest,
    RequestLog,
    RetryingClient,
    RetryStopReason,
    RetryStrategy,
    SessionBuilder,
    UnprocessedRequestError,
    new_response,
)
from aioretry_smithy.testing import ScriptedTransport

REQUEST = HttpRequest("GET", "http://example.com/")


async def send(*answers, timeout_after=None, request=REQUEST):
    ctx = ClientRequestContext(request, timeout=timeout_after)
    return await ScriptedTransport(answers).execute(ctx, request)


async def asynchronous(ctx, request):
    await asyncio.sleep(1.0)
    return 202


async def in_two_steps(ctx, request):
    return lambda ctx, request: (202, {}, b"")


@pytest.mark.parametrize(
    "answer",
    [
        202,
        (202, {}, b""),
        lambda ctx, request: 202,
        lambda ctx, request: new_response(request, 202),
        asynchronous,
        in_two_steps,
    ],
)
async def test_answers_of_every_kind(answer):
    """A status, a tuple, a response, and functions of either colour that return one."""
    response = await send(answer)

    assert isinstance(response, aiohttp.ClientResponse)
    assert 202 == response.status


async def test_answer_with_headers_and_body():
    """A tuple says all that a response has."""
    response = await send((201, {"A": "1"}, b"abc"))

    assert (201, "Created") == (response.status, response.reason)
    assert "1" == response.headers["A"]
    assert b"abc" == await response.read()


async def test_response_is_handed_over_as_it_is():
    """A response made by hand is not copied."""
    response = new_response(REQUEST)

    assert response is await send(response)


@pytest.mark.parametrize(
    "answer",
    [
        TimeoutError("late"),
        TimeoutError,
        lambda ctx, request: TimeoutError("late"),
        asyncio.CancelledError,
    ],
)
async def test_exceptions_are_raised(answer):
    """An exception, its class, and a function that returns one."""
    with pytest.raises((TimeoutError, asyncio.CancelledError)):
        await send(answer)


@pytest.mark.parametrize("answer", [True, "503", None, [503]])
async def test_what_is_no_answer_is_an_error(answer):
    """A slip in the list is named when it comes up."""
    with pytest.raises(
        ValueError, match=r"^answer: .*\(expected: a status, exception,"
    ):
        await send(answer)


async def test_functions_see_context_and_request():
    """An answer may depend on the attempt and on what is asked."""
    ctx = ClientRequestContext(REQUEST)
    attempt = ctx.derive(REQUEST)
    seen = []
    transport = ScriptedTransport([lambda *arguments: seen.append(arguments) or 200])
    await transport.execute(attempt, REQUEST)

    assert [(attempt, REQUEST)] == seen
    assert [attempt] == transport.contexts
    assert [REQUEST] == transport.requests


async def test_one_request_too_many():
    """A script that is over is a failed test, not a hanging one."""
    transport = ScriptedTransport([200])
    ctx = ClientRequestContext(REQUEST)
    await transport.execute(ctx, REQUEST)

    with pytest.raises(AssertionError, match=r"^request 2 has no answer: <HttpRequest"):
        await transport.execute(ctx, REQUEST)


async def test_end_of_the_script_is_not_retried():
    """The built-in strategies do not mistake it for a failure of the server."""
    transport = ScriptedTransport([503])
    strategy = RetryStrategy.on_server_error_status(Backoff.fixed(1.0))
    builder = (
        SessionBuilder("http://h")
        .decorator(transport)
        .decorator(RetryingClient.new_decorator(strategy))
    )
    async with builder.build() as session:
        with pytest.raises(AssertionError):
            await session.get("/")

    assert 2 == len(transport.requests)


async def test_answers_may_be_endless():
    """Any iterable will do, and no more of it is taken than is asked for."""
    transport = ScriptedTransport(iter(lambda: 200, None))
    ctx = ClientRequestContext(REQUEST)

    for _ in range(100):
        assert 200 == (await transport.execute(ctx, REQUEST)).status


async def test_deadline_cuts_a_slow_answer():
    """An answer that takes too long is a timeout, at the exact time."""
    with pytest.raises(TimeoutError):
        await send(asynchronous, timeout_after=0.25)

    assert 0.25 == asyncio.get_running_loop().time()


async def test_nothing_is_answered_after_the_deadline():
    """As with aiohttp, no request goes out when no time is left."""
    ctx = ClientRequestContext(REQUEST, timeout=1.0)
    await asyncio.sleep(2.0)
    transport = ScriptedTransport([200])

    with pytest.raises(TimeoutError):
        await transport.execute(ctx, REQUEST)
    assert ctx.log.is_complete


async def stream():
    yield b"abc"


async def test_body_that_was_read_is_refused():
    """As with aiohttp, what can go out only once goes out once."""
    request = REQUEST.replace(method="PUT", data=stream())
    ctx = ClientRequestContext(request)
    transport = ScriptedTransport([503, 200])
    await transport.execute(ctx, request)

    with pytest.raises(UnprocessedRequestError):
        await transport.execute(ctx, request)


async def test_stop_for_a_body_can_be_tested():
    """What the retrying client makes of such a body needs no server to be seen."""
    strategy = RetryStrategy.failsafe(Backoff.fixed(1.0))
    builder = (
        SessionBuilder("http://h")
        .decorator(ScriptedTransport([503, 200]))
        .decorator(RetryingClient.new_decorator(strategy))
    )
    async with builder.build() as session:
        response = await session.put("/", data=stream())

    assert 503 == response.status
    assert RetryStopReason.BODY_NOT_REPLAYABLE == RequestLog.of(response).stop_reason


async def test_log_is_kept():
    """Responses and failures are in the log when the transport is done."""
    answered, failed = (ClientRequestContext(REQUEST) for _ in range(2))
    error = TimeoutError()
    transport = ScriptedTransport([(203, {}, b"abc"), error])
    await transport.execute(answered, REQUEST)
    with pytest.raises(TimeoutError):
        await transport.execute(failed, REQUEST)

    assert (203, 3) == (answered.log.response_status, answered.log.response_length)
    assert error is failed.log.response_cause


def test_transport_is_client_and_decorator():
    """Added first, it takes the place of aiohttp, whatever it is given."""
    transport = ScriptedTransport([])

    assert isinstance(transport, HttpClient)
    assert transport is transport(DecoratingClient(transport))
