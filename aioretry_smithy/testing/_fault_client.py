"""Inject faults into requests."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from .._bodies.response_content import read_whole
from .._call.recorder import record_injected
from .._context.client import DecoratingClient, Decorator, HttpClient
from .._context.recording import close_result, record_error, record_result
from .._errors import bad_argument, is_plain_function
from .._rules.conditions import checked_answer
from .._text import name_of
from ._fault import FaultKind, InjectedFault, Latency, wait_for_answer

if TYPE_CHECKING:
    import aiohttp

    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest

Enabled: TypeAlias = bool | Callable[["ClientRequestContext", "HttpRequest"], bool]
"""Whether faults are injected, for all requests or one."""


class FaultInjectingClient(DecoratingClient[HttpClient]):
    """Makes requests fail, wait and hang, in a test or on purpose in production.

    Add it first: then retries, circuit breakers, budgets and limits meet the faults as
    they would those of a server. The log of an answer or a failure that it makes has
    ``injected`` True and ``sent`` False, and says "injected" in its views.

    >>> decorator = FaultInjectingClient.new_decorator(
    ...     InjectedFault.latency((0.05, 0.2)),
    ...     InjectedFault.status(503, rate=0.1, headers={"Retry-After": "1"}),
    ...     InjectedFault.error(aiohttp.ServerDisconnectedError, rate=0.05),
    ... )
    >>> builder = SessionBuilder.standard(inside=[decorator])
    """

    _serves = "sessions"

    def __init__(
        self,
        delegate: HttpClient,
        faults: tuple[InjectedFault, ...],
        random: Callable[[], float],
        enabled: Enabled,
    ) -> None:
        super().__init__(delegate)
        self._faults = faults
        self._random = random
        self._enabled = enabled

    @classmethod
    def new_decorator(
        cls,
        *faults: InjectedFault,
        random: Callable[[], float] = random.random,
        enabled: Enabled = True,
    ) -> Decorator:
        """Return a decorator that injects faults.

        Args:
            faults: The faults, tried in this order for each request. The seconds of
                all latencies that affect it are added up; the first other fault that
                affects it decides, and no fault after that is tried.
            random: Returns numbers in [0, 1), one for each fault that is tried, and one
                more for a latency that affects the request.
            enabled: Whether faults are injected. False: the chain is as if this
                decorator were not in it. Or a plain function of the context and the
                request, asked for each request.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.

        >>> def is_rehearsal(ctx, request):
        ...     return request.headers.get("X-Rehearsal") == "1"
        >>> decorator = FaultInjectingClient.new_decorator(
        ...     InjectedFault.hang(), enabled=is_rehearsal
        ... )
        """
        for number, fault in enumerate(faults):
            if not isinstance(fault, InjectedFault):
                expected = "an InjectedFault, such as InjectedFault.hang()"
                raise bad_argument(f"faults[{number}]", fault, expected)
        if not is_plain_function(random):
            raise bad_argument("random", random, "a function that returns a number")
        if not (isinstance(enabled, bool) or is_plain_function(enabled)):
            expected = "True, False, or a plain function of ctx and request"
            raise bad_argument("enabled", enabled, expected)
        if enabled is False:
            return lambda delegate: delegate
        return lambda delegate: cls(delegate, faults, random, enabled)

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Wait, then answer or raise in place of the server, or send the request on."""
        try:
            seconds, kind = self._struck_by(ctx, request)
        except BaseException as cause:
            record_error(ctx, cause)
            raise
        answer = await self._answer(ctx, request, seconds, kind)
        if answer is not None:
            return answer
        response = await self.delegate.execute(ctx, request)
        try:
            kind.spoil(ctx, response)
        except BaseException as cause:
            record_error(ctx, cause)
            close_result(ctx, response)
            raise
        if ctx.attempt is not None and ctx.call.reads_whole_bodies:
            # As the transport does; what is cut here stands for what the server sent.
            await read_whole(ctx, response)
        return response

    def _struck_by(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> tuple[float, FaultKind]:
        """Return how long *request* is to wait, and the fault after that."""
        seconds, enabled = 0.0, self._enabled
        if callable(enabled) and not checked_answer("enabled", enabled(ctx, request)):
            return seconds, FaultKind()
        for fault in self._faults:
            if fault._strikes(request, self._random):
                if not isinstance(fault._kind, Latency):
                    return seconds, fault._kind
                seconds += fault._kind.draw(self._random)
        return seconds, FaultKind()

    async def _answer(
        self,
        ctx: ClientRequestContext,
        request: HttpRequest,
        seconds: float,
        kind: FaultKind,
    ) -> aiohttp.ClientResponse | None:
        """Wait, then answer or raise; None where the request is to go on.

        Whatever ends the wait, it was injected.
        """
        try:
            if seconds:
                await wait_for_answer(self.delegate, ctx, request, seconds)
            answer = await kind.answer(self.delegate, ctx, request)
            if answer is None:
                return None
            record_result(ctx, answer)
        except BaseException as cause:
            record_error(ctx, cause)
            record_injected(ctx.record)
            raise
        record_injected(ctx.record)
        return answer

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        settings = [*map(repr, self._faults)]
        if callable(self._enabled):
            settings.append(f"enabled={name_of(self._enabled)}")
        return f"{type(self).__name__}({', '.join(settings)})"
