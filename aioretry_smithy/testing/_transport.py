"""A leaf that answers from a list."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import TYPE_CHECKING

import aiohttp

from .._bodies.request_body import HeldPayload, prepare
from .._call.recording import record_failed_send, record_response
from .._call.time_limits import passed_limit
from .._errors import bad_argument
from .._session.deadline import too_late
from ._answer import check, respond

if TYPE_CHECKING:
    from .._call.client import HttpClient
    from .._call.context import ClientRequestContext
    from .._request.request import HttpRequest
    from ._answer import ScriptedAnswer

_SCHEMES = frozenset({"http", "https", "ws", "wss"})


class ScriptedTransport:
    """Answers one request after another from a list, without any network.

    It is a client and, at once, a decorator that ignores the client it is given: add it
    first, and the rest of the chain talks to it instead of to aiohttp. The responses
    are real ones. The deadline of an attempt holds for an answer that takes its time:
    the attempt fails as with aiohttp, with an ``AttemptTimeoutError``. What
    aiohttp refuses before it sends anything is refused here too: no URL, a relative one
    where there is no base, one of another scheme, ``data`` beside ``json``.

    Args:
        answers: The answers, in order, each a :data:`ScriptedAnswer`. One request too
            many is an :class:`AssertionError`. An iterator may be endless: of it no
            more is taken than is asked for.

    Raises:
        ValueError: One of *answers* is none; those of an iterator are looked at when
            their turn comes.

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

    # With object, so that a list in a variable passes: of what stands in it mypy
    # remembers only the class that all have in common. The other half tells editors
    # what the arguments of a lambda are.
    def __init__(self, answers: Iterable[ScriptedAnswer | object]) -> None:
        if isinstance(answers, str | bytes | Mapping | Set) or not isinstance(
            answers, Iterable
        ):
            raise bad_argument("answers", answers, "a list, such as [503, 200]")
        self._script = answers if isinstance(answers, Iterator) else list(answers)
        self._checked: object = None
        if isinstance(self._script, list):
            for number, answer in enumerate(self._script):
                self._check(f"answers[{number}]", answer)
        self._answers = iter(self._script)
        self._answered = 0
        self.contexts = []
        self.requests = []

    @property
    def unused(self) -> list[object]:
        """The answers that no request has got so far.

        Raises:
            ValueError: They come from an iterator, which cannot be looked into.

        >>> ScriptedTransport([503, 200]).unused
        [503, 200]
        """
        if not isinstance(self._script, list):
            expected = "a list, for its rest to be known"
            raise bad_argument("answers", self._script, expected)
        return self._script[self._answered :]

    def __call__(self, delegate: HttpClient) -> HttpClient:
        """Be the decorator that puts this transport in the place of *delegate*."""
        return self

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Answer with what is next in the list."""
        self.contexts.append(ctx)
        self.requests.append(request)
        answered = self._answered
        try:
            try:
                async with asyncio.timeout_at(ctx.deadline):
                    # In no variable: what is raised has this frame.
                    response = await respond(
                        *self._next_answer(ctx, request), ctx, request
                    )
            except TimeoutError as cut:
                if (passed := passed_limit(ctx, cut)) is None:
                    raise
                raise passed() from cut
        except BaseException as cause:
            if self._answered == answered:
                # It was refused before it got an answer.
                ctx.log._record_failure(cause)
            else:
                record_failed_send(ctx.log, cause)
            raise
        ctx.log._sent = True
        record_response(ctx.log, response)
        return response

    def _next_answer(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> tuple[str, object]:
        _refuse(request)
        if ctx.remaining() <= 0:
            raise too_late(ctx)
        body = prepare(ctx, request.arguments.get("data"))
        if body is not None or request.arguments.get("json") is not None:
            ctx.log._request_length = None  # unknown: it is not sent
        if isinstance(body, HeldPayload):
            body.start()
        try:
            answer = next(self._answers)
        except StopIteration:
            message = f"request {len(self.requests)} has no answer: {request!r}"
            raise AssertionError(message) from None
        name = f"answers[{self._answered}]"
        self._answered += 1
        self._check(name, answer)
        return name, answer

    def _check(self, name: str, answer: object) -> None:
        # A body may have changed since it was looked at, a function has not.
        if answer is not self._checked or not callable(answer):
            check(name, answer)
            self._checked = answer


def _refuse(request: HttpRequest) -> None:
    """Refuse what aiohttp refuses before it sends anything."""
    arguments = request.arguments
    if arguments.get("data") is not None and arguments.get("json") is not None:
        raise bad_argument("json", arguments["json"], "None beside data")
    url = request.url
    if url.scheme and url.scheme not in _SCHEMES:
        raise aiohttp.NonHttpUrlClientError(url)
    if not (url.scheme and url.raw_host):
        raise aiohttp.InvalidUrlClientError(url)
