"""Check the answers of a scripted transport, and make responses of them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import aiohttp
from multidict import CIMultiDict

from .._bodies.new_response import new_response
from .._errors import bad_argument
from .._shown import shown

if TYPE_CHECKING:
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest

ScriptedBody: TypeAlias = bytes | str | dict[str, Any] | list[Any]
"""Bytes; text, which is sent as UTF-8; or a dict or list, which is sent as JSON."""

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


def _check_function(name: str, answer: Callable[..., Any]) -> None:
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
        case (status, Mapping() | None, body):
            pass
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
    texts = headers if isinstance(headers, Mapping) else {None: None}
    if headers is not None and not all(
        isinstance(text, str) for pair in texts.items() for text in pair
    ):
        raise bad_argument("headers", headers, "a mapping of str to str, or None")
    _check_body("body", body, body)


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
