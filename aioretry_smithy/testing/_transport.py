"""A leaf that answers from a list."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import aiohttp

from .._body import HeldPayload, prepare
from .._deadline import too_late
from .._errors import bad_argument
from .._response import new_response, observe

if TYPE_CHECKING:
    from .._client import HttpClient
    from .._context import ClientRequestContext
    from .._request import HttpRequest

ScriptedAnswer: TypeAlias = (
    int
    | BaseException
    | type[BaseException]
    | tuple[int, Mapping[str, str], bytes]
    | aiohttp.ClientResponse
    | Callable[["ClientRequestContext", "HttpRequest"], Any]
)
"""What a scripted transport answers with.

A status; an exception, or a class of one, that is raised; ``(status, headers, body)``;
a response; or a function of the context and the request, plain or ``async``, that
returns one of these.
"""


class ScriptedTransport:
    """Answers one request after another from a list, without any network.

    It is a client and, at once, a decorator that ignores the client it is given: add it
    first, and the rest of the chain talks to it instead of to aiohttp. The responses
    are real ones. The deadline of an attempt holds for an answer that takes its time:
    the attempt fails with a :class:`TimeoutError`, as with aiohttp.

    Args:
        answers: The answers, in order. One request too many is an
            :class:`AssertionError`.

    >>> transport = ScriptedTransport([503, TimeoutError(), (200, {}, b"fine")])
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

    def __init__(self, answers: Iterable[ScriptedAnswer]) -> None:
        self._answers = iter(answers)
        self.contexts = []
        self.requests = []

    def __call__(self, delegate: HttpClient) -> HttpClient:
        """Be the decorator that puts this transport in the place of *delegate*."""
        return self

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Answer with what is next in the list."""
        self.contexts.append(ctx)
        self.requests.append(request)
        try:
            answer = self._next_answer(ctx, request)
            async with asyncio.timeout_at(ctx.deadline):
                response = await _perform(answer, ctx, request)
        except BaseException as cause:
            ctx.log.record_failure(cause)
            raise
        observe(ctx.log, response)
        return response

    def _next_answer(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> ScriptedAnswer:
        if ctx.remaining() <= 0:
            raise too_late(ctx)
        body = prepare(ctx, request.arguments.get("data"))
        if isinstance(body, HeldPayload):
            body.start()
        try:
            return next(self._answers)
        except StopIteration:
            message = f"request {len(self.requests)} has no answer: {request!r}"
            raise AssertionError(message) from None


async def _perform(
    answer: Any, ctx: ClientRequestContext, request: HttpRequest
) -> aiohttp.ClientResponse:
    if isinstance(answer, BaseException):
        raise answer
    if isinstance(answer, type) and issubclass(answer, BaseException):
        raise answer
    if isinstance(answer, aiohttp.ClientResponse):
        return answer
    if isinstance(answer, int) and not isinstance(answer, bool):
        return new_response(request, answer)
    if isinstance(answer, tuple):
        status, headers, body = answer
        return new_response(request, status, headers=headers, body=body)
    if not callable(answer):
        raise bad_argument(
            "answer", answer, "a status, exception, tuple, response or function"
        )
    result = answer(ctx, request)
    if isinstance(result, Awaitable):
        result = await result
    return await _perform(result, ctx, request)
