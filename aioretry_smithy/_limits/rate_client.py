"""Let only so many requests go out in a time."""

from __future__ import annotations

import logging
import weakref
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from .. import _checks as check
from .._bodies.response_content import whole_body
from .._call.call import Call, await_body
from .._call.closing import unless_closed
from .._call.outcome import NOTHING
from .._call.recorder import begin_after_wait, record_failure
from .._clock import loop_time
from .._context.client import DecoratingClient, Decorator, HttpClient
from .._context.holdings import holdings_of, is_held
from .._failures.failure import failure_of
from .._log.request_log import log_of
from .._policies.listeners import DryRun
from .._policies.queues import note_queue, unless_held, unsent
from .._request.keys import OneForAll, PerKey, service_key
from .rate_gate import Permits, RateGate, TurnTime, gate_of
from .rate_limit import RateLimit, RateLimitError, keep_charge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import aiohttp

    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest
    from .rate_rules import Charge, RatePermit

    RateGates: TypeAlias = OneForAll[RateGate] | PerKey[RateGate]
    RateLimits: TypeAlias = float | RateLimit | Sequence[RateLimit]
    RateLimitFactory: TypeAlias = Callable[[str], RateLimits]


_logger = logging.getLogger("aioretry_smithy")


def ask_for_actual(
    ctx: ClientRequestContext,
    limit: RateLimit,
    charge: Charge,
    response: aiohttp.ClientResponse,
) -> None:
    """Correct a charge by the actual cost, if the user gave a function for that.

    That is after the body where a strategy looks at it, else now.
    """
    actual = limit._actual
    if actual is None:
        return
    record, find = ctx.record, _finder_of(response)

    def ask(call: Call, result: object, body: bytes | None) -> None:
        # Of several requests for one answer the body of one is read.
        content = body if find() is result else None
        try:
            figure = actual(log_of(call, record), content)
            if figure is not None:
                check.not_negative("actual", figure)
                limit._settle(charge, figure)
        except Exception:
            # The answer is not lost for it; the estimate stands.
            _logger.warning("%r: actual raised", limit, exc_info=True)

    if not await_body(ctx.call, ask):
        body = whole_body(response) if ctx.call.reads_whole_bodies else None
        ask(ctx.call, response, body)


def _finder_of(response: object) -> Callable[[], object]:
    """Return a weak reference to a response; a strong one if unsupported."""
    try:
        return weakref.ref(response)
    except TypeError:
        return lambda: response


class RateLimitingClient(DecoratingClient[HttpClient]):
    """Lets each request wait for its turn at a rate, first come, first served.

    Inside a retrying client, as usual, each attempt waits for a turn of its own. The
    wait is the ``delay`` of the attempt before, or of the call, with ``"rate_limit"``
    as its ``delay_source``; the attempt and its timeout begin after it. A request whose
    turn comes too late raises a :class:`RateLimitError` at once.

    Of several limits, such as requests a minute and tokens a minute, a request takes a
    turn at each, or at none. It stands in all their lines at once, so that one which
    waits for requests also holds up those behind it that need few tokens. A request
    that would be in time but for that is refused when its time is up, not at once.

    >>> decorator = RateLimitingClient.new_decorator(RateLimit(50))
    """

    _serves = "sessions"

    def __init__(
        self,
        delegate: HttpClient,
        gates: RateGates,
        timeout: float | None,
        dry_run: DryRun | None,
    ) -> None:
        super().__init__(delegate)
        self._gates = gates
        self._longest_wait = timeout
        self._dry_run = dry_run

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Wait for a turn, send the request, and let the limits learn from the answer.

        Raises:
            RateLimitError: The turn does not come in time.
            Exception: What the delegate or a function of the user's raises.
        """
        try:
            gate = self._gates.of(request)
        except BaseException as error:
            record_failure(ctx, error)
            raise
        if gate is None:
            return await self.delegate.execute(ctx, request)
        holdings = holdings_of(ctx)
        try:
            turn = gate.try_pass(ctx, ctx.call.loop.time())
            if turn is None:
                turn = await self._wait(ctx, request, gate)
        except BaseException as error:
            record_failure(ctx, error)
            raise
        holdings.add(*gate.limits)
        try:
            response = await self.delegate.execute(ctx, request)
        except BaseException as cause:
            _learn_from_failure(turn, cause)
            raise
        finally:
            holdings.remove(*gate.limits)
        _learn_from_answer(ctx, turn, response)
        return response

    async def _wait(
        self, ctx: ClientRequestContext, request: HttpRequest, gate: RateGate
    ) -> RatePermit:
        """Wait for a turn at each limit, unless nothing is enforced.

        Where an attempt around has a turn, that of the request is on credit.

        Raises:
            RateLimitError: It does not come in time.
            RuntimeError: The session is closed.
            Exception: A function of the user's has raised it.
        """
        call, started = ctx.call, loop_time()
        time, dry_run = TurnTime.of(call, self._longest_wait), self._dry_run
        wait = partial(gate.wait, ctx, request, time, enforce=dry_run is None)
        if dry_run is not None:
            try:
                permits = await wait()
            except Exception as error:
                dry_run.refused(request, error)
                return gate.untaken()
            if permits.limit is not None:
                dry_run.waited(request, permits.waited, permits.limit)
            return permits
        missing = [each for each in gate.limits if not is_held(ctx, each)]
        try:
            taken = await unless_closed(
                call, lambda: unless_held(wait(), ctx, missing, Permits.give_back)
            )
            if taken is NOTHING:
                permits = await unless_closed(call, wait)
                permits.waited = loop_time() - started
            else:
                permits = taken
        except RateLimitError as error:
            note_queue(ctx, started)
            unsent(error)
            raise
        if permits.waited:
            begin_after_wait(call, ctx.record, permits.waited)
        return permits

    @classmethod
    def new_decorator(
        cls,
        limit: RateLimits,
        *,
        timeout: float | None = None,
        enforce: bool = True,
    ) -> Decorator:
        """Return a decorator with one rate, or one list of rates, for all requests.

        Args:
            limit: The rate; or a number, which is how many go out in a second; or a
                list of rates, each of which is there once, and at most one of them a
                :class:`~aioretry_smithy.limits.SharedRateLimit`, which is asked last.
            timeout: Longest wait of a request in seconds, finite and >= 0; its deadline
                may end it sooner. None: only the deadline ends it.
            enforce: False: count, decide and log, but let no request wait, and refuse
                none.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.

        >>> decorator = RateLimitingClient.new_decorator(
        ...     [RateLimit(500, per=60.0), RateLimit(20, burst=5)]
        ... )
        """
        gate = gate_of("limit", limit)
        return cls._decorator(OneForAll("all", gate), timeout, enforce, repr(gate))

    @classmethod
    def new_per_host_decorator(
        cls,
        factory: RateLimitFactory,
        *,
        timeout: float | None = None,
        enforce: bool = True,
    ) -> Decorator:
        """Return a decorator with a rate, or a list of rates, for each host and port.

        All sessions built with the decorator share the rates. Those of the 1024 most
        recently used hosts are kept. A URL without a host goes through unasked.

        Args:
            factory: Makes the limit of a key, such as ``example.com:443``, or the list
                of its limits; a number is requests a second.
            timeout: As for :meth:`new_decorator`.
            enforce: As for :meth:`new_decorator`.

        Returns:
            The decorator.

        Raises:
            ValueError: An argument is not as described.

        >>> decorator = RateLimitingClient.new_per_host_decorator(
        ...     lambda key: RateLimit(100, per=60.0)
        ... )
        """
        check.factory(factory)

        def make(key: str) -> RateGate:
            return gate_of(f"factory({key!r})", factory(key))

        gates = PerKey("host", service_key, make, factory)
        return cls._decorator(gates, timeout, enforce, f"rate limit, {gates!r},")

    @classmethod
    def _decorator(
        cls, gates: RateGates, timeout: float | None, enforce: bool, owner: str
    ) -> Decorator:
        check.not_negative("timeout", timeout, or_none=True)
        dry_run = DryRun.unless(enforce, owner)
        return lambda delegate: cls(delegate, gates, timeout, dry_run)

    @property
    def limits(self) -> Mapping[str, RateLimit]:
        """The limits in use by their keys, as of now, for health pages.

        The key of the one given to :meth:`new_decorator` is ``all``. Of several with a
        key, such as ``all``, the others are ``all#2``, ``all#3`` and so on.

        >>> limits = [RateLimit(500, per=60.0), RateLimit(20)]
        >>> decorator = RateLimitingClient.new_decorator(limits)
        >>> dict(decorator(ScriptedTransport([])).limits)
        {'all': RateLimit(500, 60.0), 'all#2': RateLimit(20, 1.0)}
        """
        return MappingProxyType(
            {
                key if number == 1 else f"{key}#{number}": limit
                for key, gate in self._gates.in_use().items()
                for number, limit in enumerate(gate.limits, 1)
            }
        )

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        dry = "" if self._dry_run is None else ", enforce=False"
        given = f"{self._gates!r}, timeout={self._longest_wait!r}{dry}"
        return f"{type(self).__name__}({given})"


def _learn_from_answer(
    ctx: ClientRequestContext, turn: RatePermit, response: aiohttp.ClientResponse
) -> None:
    """Let the limits learn from an answer, and ask for its actual cost."""
    turn.learn(response)
    for limit, charge in turn.charges:
        keep_charge(response, limit, charge)
        ask_for_actual(ctx, limit, charge, response)


def _learn_from_failure(turn: RatePermit, cause: BaseException) -> None:
    """Let the limits learn from a raised answer, or from the lack of an answer."""
    answer = failure_of(cause).answer_of_server
    if answer is None:
        turn.lose()
    else:
        turn.learn(answer)
