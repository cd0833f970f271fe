"""Scripted answers in place of a server's, for a client or for a strategy."""

from __future__ import annotations

import asyncio
import inspect
import io
import json
from collections.abc import (
    AsyncIterable,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Set,
)
from contextlib import AbstractContextManager, ExitStack
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import aiohttp
from aiohttp import payload
from multidict import CIMultiDict
from yarl import URL

from .._bodies.replayable_payload import ReplayablePayload
from .._bodies.response_content import HAS_STREAM_WRITER, new_response
from .._call.call import CallDefaults
from .._call.closing import refuse_as_closed
from .._call.record import Upload
from .._call.recorder import note_request, record_failure
from .._context.context import CallContext, ClientRequestContext
from .._context.recording import record_result
from .._errors import bad_argument, call_it, shown
from .._request.endpoint import SCHEMES
from .._request.request import HttpRequest
from .._retry.strategy import RetryStrategy, RetryStrategyWithContent, decision_of
from .._session.deadline import too_late
from .._session.request_classes import serializer_of
from .._session.transport import Transport, prepared_body, record_unsent

if TYPE_CHECKING:
    from .._context.client import HttpClient
    from .._policies.backoff import Backoff
    from .._request.arguments import Arguments


ScriptedBody: TypeAlias = bytes | str | dict[str, Any] | list[Any]
"""Bytes; text, sent in UTF-8; or a dict or list, sent in JSON."""

ScriptedAnswer: TypeAlias = (
    int
    | tuple[int, ScriptedBody]
    | tuple[int, Mapping[str, str], ScriptedBody]
    | dict[str, Any]
    | list[Any]
    | BaseException
    | type[BaseException]
    | aiohttp.ClientResponse
    | Callable[["ClientRequestContext", "HttpRequest"], Any]
)
"""An answer of a scripted transport.

A status; ``(status, body)``; ``(status, headers, body)``; a dict or a list, sent as
JSON with the status 200; an exception or an exception class to raise; a response;
or a function of the context and the request, plain or ``async``, that returns one of
these. A body is bytes, text, or a dict or list for JSON. Text and JSON get their
``Content-Type`` unless *headers* has one.
"""

_STATUS = "a status from 100 to 999"
_TUPLE = "(status, body) or (status, headers, body)"
_BODY = "bytes, a str, or a dict or list that JSON can carry"
_ANSWER = (
    f"a status such as 503, {_TUPLE}, a dict or list for JSON, an exception, "
    "a response, or a function of ctx and request"
)


class ScriptedTransport(Transport):
    """Answers one request after another from a list, without any network.

    It is a client and also a decorator, which ignores the client that it wraps: add it
    first, and the rest of the chain calls it instead of aiohttp. The responses
    are real ones. The deadline of an attempt cuts a slow answer: the attempt fails as
    with aiohttp, with an ``AttemptTimeoutError``. Requests that aiohttp refuses before
    sending are refused here too: of a closed session, with an argument that its methods
    do not have, with an invalid URL, a relative one without a base, one of another
    scheme, with ``data`` beside ``json``, and with values that no request can be built
    of, such as ``params={"active": True}``, a header that is a number, or a ``json``
    that cannot be serialized.

    Args:
        answers: The answers, in order, each a :data:`ScriptedAnswer`. One request too
            many is an :class:`AssertionError`. An iterator may be endless: one answer
            is taken per request.

    Raises:
        ValueError: One of *answers* is not an answer; those of an iterator are checked
            when their turn comes.

    >>> transport = ScriptedTransport([503, TimeoutError(), (200, {"orders": [7]})])
    >>> builder = (
    ...     SessionBuilder()
    ...     .decorator(transport)
    ...     .decorator(RetryingClient.new_decorator(RetryStrategy.failsafe()))
    ... )
    """

    contexts: list[ClientRequestContext]
    """The contexts of the requests seen so far."""

    requests: list[HttpRequest]
    """The requests seen so far."""

    # "object" accepts a list in a variable, of which mypy knows only the common base of
    # its items. The other half tells editors the arguments of a lambda.
    def __init__(self, answers: Iterable[ScriptedAnswer | object]) -> None:
        if isinstance(answers, str | bytes | Mapping | Set) or not isinstance(
            answers, Iterable
        ):
            raise bad_argument("answers", answers, "a list, such as [503, 200]")
        self._script = answers if isinstance(answers, Iterator) else list(answers)
        if isinstance(self._script, list):
            for number, answer in enumerate(self._script):
                check(f"answers[{number}]", answer)
        self._answers = iter(self._script)
        self._answered = 0
        self.contexts = []
        self.requests = []

    @property
    def unused(self) -> list[object]:
        """The answers that are left.

        Raises:
            ValueError: They come from an iterator.

        >>> ScriptedTransport([503, 200]).unused
        [503, 200]
        """
        if not isinstance(self._script, list):
            expected = "a list, for its rest to be known"
            raise bad_argument("answers", self._script, expected)
        return self._script[self._answered :]

    def __call__(self, delegate: HttpClient) -> HttpClient:
        """Replace *delegate* by this transport."""
        return self

    def start(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> Awaitable[aiohttp.ClientResponse]:
        """Take the next answer of the list."""
        self.contexts.append(ctx)
        self.requests.append(request)
        try:
            note_request(ctx, request)
            return self._next_answer(ctx, request)
        except BaseException as cause:
            record_unsent(ctx, cause)
            raise

    def _next_answer(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> Awaitable[aiohttp.ClientResponse]:
        call = ctx.call
        refuse(ctx, request)
        if ctx.remaining() <= 0:
            raise too_late(call)
        body = prepared_body(call, request.arguments.get("data"))
        if body is not None or request.arguments.get("json") is not None:
            ctx.record.upload = Upload()  # unknown: it is not sent
        if isinstance(body, ReplayablePayload):
            body.start()
        try:
            answer = next(self._answers)
        except StopIteration:
            message = f"request {len(self.requests)} has no answer: {request!r}"
            raise AssertionError(message) from None
        name = f"answers[{self._answered}]"
        self._answered += 1
        return self._answer(name, answer, ctx, request)

    async def _answer(
        self, name: str, answer: object, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        # A body may have changed since the list was checked.
        check(name, answer)
        async with asyncio.timeout_at(ctx.deadline):
            return await respond(name, answer, ctx, request)


def check(name: str, answer: object) -> None:
    """Refuse a bad answer, and say what to write instead."""
    if isinstance(answer, BaseException | aiohttp.ClientResponse):
        return
    if isinstance(answer, type):
        if not issubclass(answer, BaseException):
            raise bad_argument(name, answer, _ANSWER)
    elif callable(answer):
        _check_function(name, answer)
    elif isinstance(answer, tuple):
        _check_tuple(name, answer)
    elif isinstance(answer, dict | list):
        _check_body(name, answer, answer)
    else:
        _check_status(name, answer)


def _check_function(name: str, answer: Callable[..., object]) -> None:
    try:
        signature = inspect.signature(answer)
    except (TypeError, ValueError):  # some that are written in C do not tell
        return
    try:
        signature.bind(None, None)
    except TypeError:
        expected = "a function of two arguments: lambda ctx, request: ..."
        raise bad_argument(name, answer, expected) from None


def _check_tuple(name: str, answer: tuple[object, ...]) -> None:
    match answer:
        case (status, Mapping() | None as headers, body):
            if not _are_headers(headers):
                raise bad_argument(name, answer, f"{_TUPLE}, headers of str to str")
        case (status, body):
            pass
        case _:
            raise bad_argument(name, answer, _TUPLE)
    _check_status(name, status)
    _check_body(name, answer, body)


def check_response(status: object, headers: object, body: object) -> None:
    """Refuse what no response can be made of."""
    if not isinstance(status, int) or isinstance(status, bool):
        raise bad_argument("status", status, _STATUS)
    _check_status("status", status)
    if not _are_headers(headers):
        raise bad_argument("headers", headers, "a mapping of str to str, or None")
    _check_body("body", body, body)


def _are_headers(headers: object) -> bool:
    """Say whether it is a mapping of texts, or None."""
    if not isinstance(headers, Mapping):
        return headers is None
    return all(isinstance(text, str) for pair in headers.items() for text in pair)


def _check_body(name: str, answer: object, body: object) -> None:
    try:
        _encode(body)
    except (TypeError, ValueError):
        raise bad_argument(name, answer, f"a body of {_BODY}") from None


def _check_status(name: str, answer: object) -> None:
    if isinstance(answer, int) and not isinstance(answer, bool):
        if not 100 <= answer <= 999:
            raise bad_argument(name, answer, _STATUS)
        return
    expected = _ANSWER
    if isinstance(answer, str) and answer.isdecimal():
        expected = f"{answer} without quotes, for a status"
    elif isinstance(answer, str | bytes):
        expected = f"(200, {shown(answer)}), for a body"
    elif inspect.iscoroutine(answer):
        answer.close()  # it will not run, and need not warn of that too
        expected = "a function that makes it anew: lambda ctx, request: ..."
    raise bad_argument(name, answer, expected)


async def respond(
    name: str, answer: Any, ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    """Return the response of a checked answer, or raise its exception."""
    while callable(answer) and not isinstance(answer, type):
        answer = answer(ctx, request)
        if isinstance(answer, Awaitable):
            answer = await answer
        name = f"{name}()"
        check(name, answer)
    if isinstance(answer, BaseException | type):
        try:
            raise answer
        finally:
            del answer  # its traceback has this frame: no cycle
    if isinstance(answer, aiohttp.ClientResponse):
        return answer
    match answer:
        case (status, headers, body) if isinstance(answer, tuple):
            return made_response(request, status, headers, body)
        case (status, body) if isinstance(answer, tuple):
            return made_response(request, status, None, body)
        case int():
            return made_response(request, answer, None, b"")
        case _:
            return made_response(request, 200, None, answer)


def made_response(
    request: HttpRequest, status: int, headers: Mapping[str, str] | None, body: object
) -> aiohttp.ClientResponse:
    """Make a response of what was checked."""
    content, content_type = _encode(body)
    given = CIMultiDict(headers or {})
    if content_type is not None:
        given.setdefault("Content-Type", content_type)
    return new_response(request, status, headers=given, body=content)


def _encode(body: object) -> tuple[bytes, str | None]:
    """Return a body as bytes, and the Content-Type of text and JSON."""
    if isinstance(body, bytes):
        return body, None
    if isinstance(body, str):
        return body.encode(), "text/plain; charset=utf-8"
    if isinstance(body, dict | list):
        return json.dumps(body).encode(), "application/json"
    raise TypeError(_BODY)


def patch_aioresponses() -> AbstractContextManager[object]:
    """Make ``aioresponses`` work with aiohttp 3.14 and newer.

    ``aioresponses`` 0.7.9 cannot make a response there, because aiohttp needs a
    ``stream_writer``. With an older aiohttp this changes nothing.

    The call itself does it: a test suite needs one line in ``conftest.py``.
    As the context manager of a block, it undoes the change at the end of the block.

    Raises:
        ModuleNotFoundError: ``aioresponses`` is not installed.

    >>> with patch_aioresponses():
    ...     pass  # here aioresponses() works
    """
    try:
        core = import_module("aioresponses.core")
    except ModuleNotFoundError as error:
        message = f"{error}; patch_aioresponses() needs it: pip install aioresponses"
        raise ModuleNotFoundError(message, name=error.name) from None
    undo = ExitStack()
    # An outer call that has made the change also undoes it.
    if HAS_STREAM_WRITER and core.ClientResponse is not _MockedResponse:
        undo.callback(setattr, core, "ClientResponse", core.ClientResponse)
        core.ClientResponse = _MockedResponse  # type: ignore[attr-defined]
    return undo


class _MockedResponse(aiohttp.ClientResponse):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        options.setdefault("stream_writer", SimpleNamespace(output_size=0))
        super().__init__(*arguments, **options)


_KINDS = RetryStrategy, RetryStrategyWithContent


async def ask(
    strategy: RetryStrategy | RetryStrategyWithContent,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    cause: Exception | None = None,
    content: bytes | None = None,
    method: str = "GET",
    attempt: int = 1,
) -> Backoff | None:
    """Ask a strategy for the answer to an outcome.

    Args:
        strategy: A strategy of either kind or a chain of them, plain or ``async``.
        status: The status of the response; 200 unless there is a *cause*.
        headers: The headers of the response.
        cause: The exception of a failed attempt, instead of a response.
        content: The body of the response, decoded; empty unless given. A strategy that
            looks at content gets as much of it as its ``max_content_length`` allows.
        method: The method of the request.
        attempt: The number of the attempt, from 1.

    Returns:
        The backoff for a retry, or None to stop.

    Raises:
        ValueError: *strategy* is of another kind, such as Smithy's; *attempt* is out of
            range, *cause* is no exception, *headers* is no mapping, *content* is not
            bytes, or is given beside a *cause*; or the strategy returns something other
            than a backoff, a decision or None.

    >>> import asyncio
    >>> asyncio.run(ask(RetryStrategy.failsafe(Backoff.fixed(1.0)), status=503))
    Backoff.fixed(1.0)
    >>> asyncio.run(ask(RetryStrategy.failsafe(), status=503, method="POST"))
    """
    if not isinstance(strategy, _KINDS):
        expected = "a RetryStrategy or a RetryStrategyWithContent"
        expected += call_it(strategy, *_KINDS)
        raise bad_argument("strategy", strategy, expected)
    request = HttpRequest(method, "http://localhost/")
    if type(attempt) is not int or attempt < 1:
        raise bad_argument("attempt", attempt, "an integer >= 1")
    if cause is not None and not isinstance(cause, BaseException):
        expected = f"an exception, or None{call_it(cause, BaseException)}"
        raise bad_argument("cause", cause, expected)
    if headers is not None and not isinstance(headers, Mapping):
        raise bad_argument("headers", headers, "a mapping of names to texts, or None")
    if content is not None and (cause is not None or not isinstance(content, bytes)):
        raise bad_argument("content", content, "bytes, or None where there is a cause")
    root = CallContext(request, asyncio.get_running_loop(), None, CallDefaults())
    *_, ctx = [root.derive(request) for _ in range(attempt)]
    if cause is None:
        content = b"" if content is None else content
        status = 200 if status is None else status
        response = new_response(request, status, headers=headers, body=content)
        record_result(ctx, response)
    else:
        record_failure(ctx, cause)
    if isinstance(strategy, RetryStrategyWithContent):
        start = content and content[: strategy.max_content_length]
        answer = strategy.should_retry(ctx, cause, start)
    else:
        answer = strategy.should_retry(ctx, cause)
    answer = await answer if isinstance(answer, Awaitable) else answer
    return decision_of(strategy, answer).backoff


# Those of a request that are checked where aiohttp makes it of them.
_BUILT = "params", "cookies", "auth", "compress", "chunked"
# Bodies of these kinds always pass; others are asked for in the registry of aiohttp.
_BODIES = (
    *(str, bytes, bytearray, memoryview, Mapping, io.IOBase),
    *(aiohttp.FormData, aiohttp.Payload, AsyncIterable),
)


def refuse(ctx: ClientRequestContext, request: HttpRequest) -> None:
    """Raise the error of aiohttp for a request that it would not send.

    Without a session, a client is tested alone.
    """
    session = ctx.call.session
    _refuse_names(session, request)
    if session is not None and session.closed:
        refuse_as_closed()
    _refuse_url(request)
    _refuse_body(session, request.arguments, is_first=ctx.attempt in {None, 1})
    _build(session, request)


def _refuse_names(session: aiohttp.ClientSession | None, request: HttpRequest) -> None:
    """Raise the error of Python for an argument that the session does not have."""
    method = (type(session) if session is not None else aiohttp.ClientSession)._request
    if inspect.isfunction(method) and inspect.iscoroutinefunction(method):
        # Nothing of it runs.
        method(session, request.method, request.target, **request.arguments).close()


def _refuse_url(request: HttpRequest) -> None:
    arguments, url = request.arguments, request.url
    if arguments.get("data") is not None and arguments.get("json") is not None:
        raise bad_argument("json", arguments["json"], "None beside data")
    if url.scheme and url.scheme not in SCHEMES:
        raise aiohttp.NonHttpUrlClientError(url)
    if not (url.scheme and url.raw_host):
        raise aiohttp.InvalidUrlClientError(url)


def _refuse_body(
    session: aiohttp.ClientSession | None, arguments: Arguments, *, is_first: bool
) -> None:
    """Raise for a body that aiohttp can make nothing of; none is read."""
    value, data = arguments.get("json"), arguments.get("data")
    if value is not None and is_first and session is not None:
        # Later attempts send what the first one has made.
        serializer_of(session)(value)
    if data is None or isinstance(data, _BODIES):
        return
    try:
        payload.PAYLOAD_REGISTRY.get(data, disposition=None)
    except payload.LookupError:
        if not callable(data):
            aiohttp.FormData(data)


def _build(session: aiohttp.ClientSession | None, request: HttpRequest) -> None:
    """Let aiohttp build the request, with a byte in place of a body.

    What it would write is not looked at: tests send odd methods and line ends to see
    how these are shown.
    """
    headers = CIMultiDict(() if session is None else session.headers)
    headers.update(request.headers)
    for name, text in headers.items():
        if not isinstance(text, str):
            raise TypeError(f"header {name!r} is no text: {text!r}")
    arguments = request.arguments
    built: dict[str, Any] = {
        name: value
        for name in _BUILT
        if not isinstance(value := arguments.get(name), Iterator)
    }
    has_body = arguments.get("json") is not None or arguments.get("data")
    proxy = arguments.get("proxy")
    if proxy is not None:
        try:
            proxy = URL(proxy)
        except ValueError:
            raise aiohttp.InvalidURL(proxy) from None
    aiohttp.ClientRequest(
        "POST" if has_body else "GET",
        request.url.with_user(None),
        headers=headers,
        data=b"x" if has_body else None,
        proxy=proxy,
        loop=asyncio.get_running_loop(),
        **built,
    )
