"""Answer requests from a list, in place of aiohttp."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import TYPE_CHECKING

import aiohttp

from .._bodies.replayable_payload import ReplayablePayload
from .._call.upload import Upload
from .._context.context import context_of
from .._errors import bad_argument
from .._session.aiohttp_transport import closed
from .._session.deadline import too_late
from .._session.transport import Transport, prepared_body, refused
from ._answer import check, respond

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._context.client import HttpClient
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest
    from ._answer import ScriptedAnswer

_SCHEMES = frozenset({"http", "https", "ws", "wss"})


class ScriptedTransport(Transport):
    """Answers one request after another from a list, without any network.

    It is a client and also a decorator, which ignores the client that it wraps: add it
    first, and the rest of the chain calls it instead of aiohttp. The responses
    are real ones. The deadline of an attempt cuts a slow answer: the attempt fails as
    with aiohttp, with an ``AttemptTimeoutError``. Requests that aiohttp refuses before
    sending are refused here too: of a closed session, with an argument that its methods
    do not have, with an invalid URL, a relative one without a base, one of another
    scheme, with ``data`` beside ``json``.

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
        """Act as the decorator that replaces *delegate* by this transport."""
        return self

    def start(
        self, call: Call, scope: Scope, request: HttpRequest
    ) -> Awaitable[aiohttp.ClientResponse]:
        """Take the next answer of the list."""
        try:
            return self._next_answer(call, scope, request)
        except BaseException as cause:
            refused(call, scope, cause)
            raise

    def _next_answer(
        self, call: Call, scope: Scope, request: HttpRequest
    ) -> Awaitable[aiohttp.ClientResponse]:
        ctx, record = context_of(call, scope), scope.record
        self.contexts.append(ctx)
        self.requests.append(request)
        _refuse_as_session(call.session, request)
        _refuse(request)
        if call.remaining(record) <= 0:
            raise too_late(call)
        body = prepared_body(call, request.arguments.get("data"))
        if body is not None or request.arguments.get("json") is not None:
            record.upload = Upload()  # unknown: it is not sent
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
        self,
        name: str,
        answer: object,
        ctx: ClientRequestContext,
        request: HttpRequest,
    ) -> aiohttp.ClientResponse:
        self._check(name, answer)
        async with asyncio.timeout_at(ctx.deadline):
            return await respond(name, answer, ctx, request)

    def _check(self, name: str, answer: object) -> None:
        # A body may have changed since it was looked at, a function has not.
        if answer is not self._checked or not callable(answer):
            check(name, answer)
            self._checked = answer


def _refuse_as_session(
    session: aiohttp.ClientSession | None, request: HttpRequest
) -> None:
    """Raise for a request that the session refuses, whatever its URL.

    Without a session, a client is tested alone.
    """
    method = (type(session) if session is not None else aiohttp.ClientSession)._request
    if inspect.isfunction(method) and inspect.iscoroutinefunction(method):
        # Python says itself what is wrong with the arguments; nothing of it runs.
        method(session, request.method, request.target, **request.arguments).close()
    if session is not None and session.closed:
        raise closed()


def _refuse(request: HttpRequest) -> None:
    """Raise for a request that aiohttp refuses before sending."""
    arguments = request.arguments
    if arguments.get("data") is not None and arguments.get("json") is not None:
        raise bad_argument("json", arguments["json"], "None beside data")
    url = request.url
    if url.scheme and url.scheme not in _SCHEMES:
        raise aiohttp.NonHttpUrlClientError(url)
    if not (url.scheme and url.raw_host):
        raise aiohttp.InvalidUrlClientError(url)
