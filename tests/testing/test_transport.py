"""The scripted transport: every kind of answer, and the manners of a real leaf."""

import asyncio
import gc
import weakref
from http import HTTPStatus
from unittest.mock import Mock

import aiohttp
import chains
import pytest
from calls import REQUEST, begin

from aioretry_smithy import (
    RetryStopReason,
    SessionBuilder,
    UnprocessedRequestError,
    new_response,
)
from aioretry_smithy.testing import ScriptedTransport


async def send(*answers, timeout_after=None, request=REQUEST):
    ctx = begin(request, timeout=timeout_after)
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
        HTTPStatus.ACCEPTED,
        (202, b""),
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


NO_ANSWERS = {
    "truth value": (True, "a status such as 503"),
    "nothing": (None, "a status such as 503"),
    "status in quotes": ("503", "503 without quotes, for a status"),
    "text": ("fine", "(200, 'fine'), for a body"),
    "bytes": (b"fine", "(200, b'fine'), for a body"),
    "status that is none": (42, "a status from 100 to 999"),
    "status with a body that is none": ((42, b""), "a status from 100 to 999"),
    "class": (dict, "a status such as 503"),
    "one in a tuple": ((200,), "(status, body) or (status, headers, body)"),
    "body first": ((b"", 200), "(200, b''), for a body"),
    "headers in a list": ((200, [], b""), "(status, body) or (status, headers, body)"),
    "header of a number": (
        (503, {"Retry-After": 1}, b""),
        "(status, body) or (status, headers, body), headers of str to str",
    ),
    "body that is a number": ((200, 7), "a body of bytes, a str, or a dict or list"),
    "JSON of bytes": ({"a": b""}, "a body of bytes, a str, or a dict or list"),
    "function of nothing": (lambda: 200, "lambda ctx, request: ..."),
}


@pytest.mark.parametrize(("answer", "expected"), NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_bad_answer_is_refused_at_once(answer, expected):
    """A slip in the list is named before a request is made, and what to write too."""
    with pytest.raises(ValueError, match=r"^answers\[1\]: ") as caught:
        ScriptedTransport([200, answer])

    assert expected in str(caught.value).partition(" (expected: ")[2]


def test_coroutine_is_no_answer():
    """An awaitable works once, so a function must make it; nothing warns of it."""
    answer = asynchronous(None, None)

    with pytest.raises(ValueError, match=r"makes it anew: lambda ctx, request: \.\.\."):
        ScriptedTransport([answer])


@pytest.mark.parametrize("answers", [503, None, "503", b"503", {503: 200}, {503}])
def test_answers_are_a_list(answers):
    """A single answer, and what is a list by chance only, are refused."""
    with pytest.raises(ValueError, match=r"^answers: .* a list, such as \[503, 200\]"):
        ScriptedTransport(answers)


@pytest.mark.parametrize("answer", [asyncio.TimeoutError, max, Mock(return_value=204)])
def test_what_does_not_tell_its_arguments_passes(answer):
    """Classes of exceptions, built-in functions and mocks may be what they may."""
    assert [answer] == ScriptedTransport([answer]).unused


async def test_what_a_function_returns_is_checked():
    """It has the name of the answer that it came from."""
    with pytest.raises(ValueError, match=r"^answers\[0\]\(\): '503' .*without quotes"):
        await send(lambda ctx, request: "503")


async def test_answers_of_an_iterator_are_checked_in_their_turn():
    """An iterator cannot be checked before its answers are there."""
    transport = ScriptedTransport(iter([200, "503"]))
    ctx = begin()
    await transport.execute(ctx, REQUEST)

    with pytest.raises(ValueError, match=r"^answers\[1\]: '503'"):
        await transport.execute(ctx, REQUEST)


JSON, TEXT = "application/json", "text/plain; charset=utf-8"


async def test_body_that_was_changed_is_refused_in_its_turn():
    """An answer may have changed since the list was checked."""
    body = {"id": 7}
    transport = ScriptedTransport([(200, body)])
    body["id"] = object()

    with pytest.raises(ValueError, match=r"answers\[0\]: .*JSON"):
        await transport.execute(begin(), REQUEST)


@pytest.mark.parametrize(
    ("answer", "status", "content_type", "body"),
    [
        ((201, b"abc"), 201, None, b"abc"),
        ((201, "aä"), 201, TEXT, "aä".encode()),
        ((409, {"error": "busy"}), 409, JSON, b'{"error": "busy"}'),
        ((409, []), 409, JSON, b"[]"),
        ((409, {"Content-Type": "a/b"}, [1]), 409, "a/b", b"[1]"),
        ((409, {"content-type": "a/b"}, "x"), 409, "a/b", b"x"),
        ((409, {}, {"a": 1}), 409, JSON, b'{"a": 1}'),
        ((409, None, b"x"), 409, None, b"x"),
        ({"orders": [7]}, 200, JSON, b'{"orders": [7]}'),
        ([], 200, JSON, b"[]"),
        ([503, 200], 200, JSON, b"[503, 200]"),
        (lambda ctx, request: {"a": 1}, 200, JSON, b'{"a": 1}'),
    ],
)
async def test_bodies_get_the_type_of_their_form(answer, status, content_type, body):
    """JSON and text say what they are, unless the headers do."""
    response = await send(answer)

    assert status == response.status
    assert content_type == response.headers.get("Content-Type")
    assert body == await response.read()


async def test_functions_see_context_and_request():
    """An answer may depend on the attempt and on what is asked."""
    ctx = begin()
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
    ctx = begin()
    await transport.execute(ctx, REQUEST)

    with pytest.raises(AssertionError, match=r"^request 2 has no answer: <HttpRequest"):
        await transport.execute(ctx, REQUEST)


async def test_end_of_the_script_is_not_retried():
    """The built-in strategies do not mistake it for a failure of the server."""
    transport = ScriptedTransport([503])
    async with chains.session(transport, chains.retrying()) as session:
        with pytest.raises(AssertionError):
            await session.get(chains.URL)

    assert 2 == len(transport.requests)


async def test_answers_may_be_endless():
    """Any iterable will do, and no more of it is taken than is asked for."""
    transport = ScriptedTransport(iter(lambda: 200, None))
    ctx = begin()

    for _ in range(100):
        assert 200 == (await transport.execute(ctx, REQUEST)).status


async def test_unused_answers_are_known():
    """An answer that no request has asked for is left as it was given."""
    error = TimeoutError()
    transport = ScriptedTransport((503, error, {"a": 1}))
    ctx = begin()
    before = transport.unused
    await transport.execute(ctx, REQUEST)
    after = transport.unused
    with pytest.raises(TimeoutError):
        await transport.execute(ctx, REQUEST)

    assert [503, error, {"a": 1}] == before
    assert [error, {"a": 1}] == after
    assert [{"a": 1}] == transport.unused


def test_rest_of_an_iterator_is_unknown():
    """It is said so, rather than that nothing is left."""
    transport = ScriptedTransport(iter([200]))

    with pytest.raises(ValueError, match=r"^answers: .*a list, for its rest"):
        _ = transport.unused


async def test_contexts_that_are_kept_keep_no_session():
    """A session that nobody closes is still noticed."""
    transport = ScriptedTransport([200])
    session = chains.session(transport)
    await session.get("http://example.com/")
    reference = weakref.ref(session)
    await session.close()
    del session
    gc.collect()

    assert 1 == len(transport.contexts)
    assert reference() is None


@pytest.mark.parametrize("url", ["orders", "/orders", "?a=b"])
async def test_relative_urls_have_a_base(url):
    """A URL that is joined with the base of the session is answered."""
    builder = SessionBuilder("http://h/").decorator(ScriptedTransport([204]))
    async with builder.build() as session:
        response = await session.get(url)

    assert 204 == response.status


async def test_deadline_cuts_a_slow_answer():
    """An answer that takes too long is a timeout, at the exact time."""
    with pytest.raises(TimeoutError):
        await send(asynchronous, timeout_after=0.25)

    assert 0.25 == asyncio.get_running_loop().time()


async def test_nothing_is_answered_after_the_deadline():
    """As with aiohttp, no request goes out when no time is left."""
    ctx = begin(timeout=1.0)
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
    ctx = begin(request)
    transport = ScriptedTransport([503, 200])
    await transport.execute(ctx, request)

    with pytest.raises(UnprocessedRequestError):
        await transport.execute(ctx, request)


@pytest.mark.parametrize(
    ("options", "length"), [({}, 0), ({"data": b"abc"}, None), ({"json": {}}, None)]
)
async def test_length_of_a_body_that_nobody_sends_is_unknown(options, length):
    """Only a request without a body has a length that is known, 0."""
    log = await chains.log_of(chains.session([200]), method="POST", **options)

    assert length == log.request_length


async def test_stop_for_a_body_can_be_tested():
    """A stop of the retrying client for such a body needs no server to be seen."""
    session = chains.retrying_session([503, 200])
    log = await chains.log_of(session, method="PUT", data=stream())

    assert 503 == log.response_status
    assert RetryStopReason.BODY_NOT_REPLAYABLE == log.stop_reason
