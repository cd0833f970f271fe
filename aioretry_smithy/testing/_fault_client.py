"""Inject faults into requests."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from .._call.hooks import WAIT, Answer, Hooks, Sign
from .._call.recorder import record_failure, record_injected
from .._context.client import DecoratingClient, Decorator, HttpClient
from .._context.context import context_of
from .._context.recording import record_result
from .._errors import bad_argument, is_plain_function
from .._rules.conditions import checked_answer
from .._text import name_of
from ._fault import FaultKind, InjectedFault, Latency, wait_for_answer

if TYPE_CHECKING:
    import aiohttp

    from .._call.call import Call
    from .._call.hooks import Scope
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

    @property
    def _hooks(self) -> FaultHooks:  # type: ignore[override]
        return FaultHooks(self._faults, self._random, self._enabled, self.delegate)

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        settings = [*map(repr, self._faults)]
        if callable(self._enabled):
            settings.append(f"enabled={name_of(self._enabled)}")
        return f"{type(self).__name__}({', '.join(settings)})"


@dataclass(frozen=True, eq=False)
class FaultHooks(Hooks):
    """Injects faults into requests.

    Args:
        faults: The faults.
        random: Returns numbers in [0, 1).
        enabled: Whether faults are injected.
        delegate: What the requests go on to.
    """

    faults: tuple[InjectedFault, ...]
    random: Callable[[], float]
    enabled: Enabled
    delegate: HttpClient

    def enter(self, call: Call, scope: Scope, request: object) -> Sign:
        """Wait for the fault, if one strikes."""
        return WAIT

    async def admit(
        self, call: Call, scope: Scope, request: HttpRequest
    ) -> FaultKind | Answer:
        """Wait, then answer or raise in place of the server, or let the request go on.

        Whatever ends the wait, it was injected.
        """
        ctx, record = context_of(call, scope), scope.record
        seconds, kind = self._struck_by(ctx, request)
        try:
            if seconds:
                await wait_for_answer(self.delegate, ctx, request, seconds)
            answer = await kind.answer(self.delegate, ctx, request)
            if answer is None:
                return kind
            record_result(ctx, answer)
        except BaseException as cause:
            record_failure(call, record, cause)
            record_injected(record)
            raise
        record_injected(record)
        return Answer(answer)

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: FaultKind,
        result: aiohttp.ClientResponse | Sign,
        cause: Exception | None,
    ) -> None:
        """Spoil the response."""
        if not isinstance(result, Sign):
            permit.spoil(context_of(call, scope), result)

    def _struck_by(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> tuple[float, FaultKind]:
        """Return how long *request* is to wait, and the fault after that."""
        seconds, enabled = 0.0, self.enabled
        if callable(enabled) and not checked_answer("enabled", enabled(ctx, request)):
            return seconds, FaultKind()
        for fault in self.faults:
            if fault._strikes(request, self.random):
                if not isinstance(fault._kind, Latency):
                    return seconds, fault._kind
                seconds += fault._kind.draw(self.random)
        return seconds, FaultKind()
