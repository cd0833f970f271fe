"""Take calls of a function that succeed at once past the clients of its chain.

As in a session, each client offers what it does to such a call as plain functions.
No context is made and no log. A call that has a place in a log, or a block of options
around it, takes the ordinary lane; an attempt that fails becomes its first one there.
"""

from __future__ import annotations

import time
from asyncio import get_running_loop
from typing import TYPE_CHECKING, Any

from .._call.client import chain_of
from .._call.context import ClientRequestContext
from .._call.enclosing import join
from .._call.options import (
    NO_ATTRIBUTES,
    AttemptOptions,
    current_options,
    enter_attempt,
    leave_attempt,
)
from .._call.short_lane import FirstAttempt
from .._call.time_limits import TimeLimits
from .._log.capture import collecting
from .._log.late_log import log_of_call
from .._log.upload import NO_BODY
from .._request.copied_arguments import NO_CONTAINERS
from .circuit_breaker_client import CircuitBreakerRpcClient
from .cut import Cut
from .function_client import FunctionClient
from .logging_client import LoggingRpcClient
from .retrying_client import RetryingRpcClient

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping, Sequence

    from .._call.client import RpcClient
    from .._call.options import RequestOptions
    from .._call.short_lane import LaneStep
    from .._log.late_log import Begun, Sent
    from .._log.request_log import RequestLog
    from .._masking.mask import Mask
    from .._request.rpc_request import RpcRequest
    from .._retry.config import RetryConfig

_OURS = {CircuitBreakerRpcClient, LoggingRpcClient, RetryingRpcClient}


class QuickAttempt(AttemptOptions):
    """The first attempt of a call, for the calls that are made inside.

    Args:
        lane: What begins it.
        permits: What the clients gave it.
    """

    __slots__ = (
        "_cut",
        "_deadline",
        "_is_over",
        "_lane",
        "_log",
        "_token",
        "loop",
        "permits",
        "started",
        "wall_clock",
    )

    # There are no options around.
    attributes: Mapping[Any, Any] = NO_ATTRIBUTES

    _log: RequestLog | None
    _token: Any

    def __init__(
        self,
        lane: QuickLane,
        permits: Sequence[Any],
        loop: asyncio.AbstractEventLoop,
        started: float,
    ) -> None:
        self._lane = lane
        self.permits = permits
        self.loop = loop
        self.wall_clock = time.time()
        self.started = started
        self._is_over = False
        self._cut = self._deadline = self._log = None
        seconds = lane.shortest
        if seconds is not None:
            self._deadline = started + seconds
            self._cut = Cut(self.loop, self._deadline)
        self._token = enter_attempt(self)

    @property
    def log(self) -> RequestLog:
        """The log of the call, which few need."""
        if self._log is None:
            self._log = self._lane.log_of(self)
        return self._log

    @property
    def record(self) -> RequestLog:
        """The log of the attempt; where nothing retries, that of the call."""
        log = self.log
        children = log.children
        return children[0] if children else log

    def take(self, ctx: ClientRequestContext) -> tuple[()]:
        """Let a call that begins be part of the attempt, while that lasts."""
        if not self._is_over:
            join(ctx, self.record, self._deadline)
        # No block is around.
        return ()

    def failed_with(self, cause: BaseException) -> FirstAttempt:
        """Name the limit that has passed, if one has, for the ordinary lane."""
        passed = None
        if self._cut is not None:
            passed = self._cut.passed_by(cause, TimeLimits.of_log(self.log))
        if passed is None:
            return FirstAttempt(cause=cause)
        error = passed()
        error.__cause__ = cause
        return FirstAttempt(cause=error)

    def end(self) -> None:
        """Go back to the options around it, and keep nothing for tasks that go on."""
        self._is_over, self._log = True, None
        # The token leads back here.
        token, self._token = self._token, None
        leave_attempt(token)
        if self._cut is not None:
            self._cut.end()


class QuickLane:
    """Begins attempts of a function, and hands over those that fail.

    Args:
        request: The request, without arguments.
        mask: Hides secrets in the log.
        options: The settings of the function.
        config: How to retry it, if anything does.
        steps: The steps of the clients.
    """

    __slots__ = (
        "_attempt_seconds",
        "_before",
        "_links",
        "_mask",
        "_name",
        "_options",
        "_request",
        "_retries",
        "_seconds",
        "after",
        "shortest",
    )

    def __init__(
        self,
        request: RpcRequest,
        mask: Mask,
        options: RequestOptions,
        config: RetryConfig | None,
        steps: dict[RpcClient, LaneStep],
    ) -> None:
        self._request, self._mask, self._options = request, mask, options
        self._name = request.name
        self._retries = config is not None
        self._seconds: Any = options.response_timeout
        self._attempt_seconds = None if config is None else config.attempt_timeout
        limits: tuple[Any, ...] = (self._seconds, self._attempt_seconds)
        given = (limit for limit in limits if limit is not None)
        self.shortest: float | None = min(given, default=None)
        asked = {link: step.before for link, step in steps.items() if step.before}
        places = {link: place for place, link in enumerate(asked)}
        self._links = tuple(asked)
        self._before = tuple(asked.values())
        self.after = tuple(
            (places[link], step.after) for link, step in steps.items() if step.after
        )

    def begin(self) -> QuickAttempt | None:
        """Begin a call; None where it has to take the ordinary lane."""
        if current_options() is not None or collecting():
            return None
        loop = get_running_loop()
        permits, now = [], loop.time()
        for before in self._before:
            permit = before("", self._name, now)
            if permit is None:
                return None
            permits.append(permit)
        return QuickAttempt(self, permits, loop, now)

    def succeed(self, attempt: QuickAttempt) -> None:
        """Let the clients note a success."""
        now = attempt.loop.time()
        for place, after in self.after:
            after(attempt.permits[place], now, None)

    def hand_over(
        self,
        attempt: QuickAttempt,
        cause: BaseException,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> ClientRequestContext:
        """Return the context of a call whose first attempt has failed."""
        request: Any = self._request.called_with(args, kwargs)
        log, record = attempt.log, attempt.record
        first = attempt.failed_with(cause)
        first.permits = dict(zip(self._links, attempt.permits, strict=True))
        first.log = record if record is not log else None
        ctx = ClientRequestContext._of(request, log)
        ctx.options = self._options
        ctx._first_attempt = first
        return ctx

    def log_of(self, attempt: QuickAttempt) -> RequestLog:
        """Make the log of a call that is under way."""
        started = attempt.loop, attempt.wall_clock, attempt.started
        nothing: Sent = self._request.name, "", {}, NO_CONTAINERS, None
        begun: Begun = nothing, {}, self._mask, *started
        limits = self._seconds, self._attempt_seconds, self._retries
        request: Any = self._request
        return log_of_call((begun, limits, NO_BODY), request)


def quick_lane_of(
    client: RpcClient, request: RpcRequest, mask: Mask, options: RequestOptions
) -> QuickLane | None:
    """Return the quick lane of a chain, or None where a client has to see every call.

    Args:
        client: The outermost client.
        request: The request, without arguments.
        mask: Hides secrets in the log.
        options: The settings of the function.
    """
    *links, innermost = chain_of(client)
    is_called: bool = isinstance(innermost, FunctionClient)
    if not is_called:
        return None
    steps: dict[Any, LaneStep] = {}
    config = None
    for link in map(_ours, links):
        step = None if link is None else link._lane_step()
        if step is None:
            return None
        steps[link] = step
        config = getattr(link, "config", config)
    return QuickLane(request, mask, options, config, steps)


def _ours(link: object) -> Any:
    # A subclass may do more.
    return link if type(link) in _OURS else None
