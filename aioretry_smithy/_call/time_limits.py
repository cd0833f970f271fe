"""Find the time limit of a call that has passed, with any clock resolution."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import aiohttp
from aiohttp.helpers import BaseTimerContext

from .._errors import AttemptTimeoutError, ResponseTimeoutError
from .._log.attachment import attach
from .._log.record import NO_CHILDREN

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from .._log.request_log import RequestLog
    from .context import ClientRequestContext

# Rounding of floating point sums stays below this.
_NEAR = 1e-6
# uvloop counts in milliseconds, but has no attribute for that.
_TICK_OF_OTHER_LOOPS = 1e-3
IN_BODY = ", which passed while its body was read"


def time_left(ctx: ClientRequestContext) -> float:
    """Return the seconds before it is too late to begin another attempt.

    A timer may fire up to one tick of the clock early, so the last tick before a
    deadline counts as passed.
    """
    return ctx.remaining() - _tick(asyncio.get_running_loop())


class TimeLimits(NamedTuple):
    """The time limits of a call and its attempt."""

    call_started: float
    call_deadline: float | None
    attempt: int | None
    attempt_started: float
    attempt_deadline: float | None

    @classmethod
    def of(cls, ctx: ClientRequestContext) -> TimeLimits:
        """Return the current limits, without a reference to the call."""
        root = ctx.root
        return cls(
            root.log.started,
            root.deadline,
            ctx.attempt,
            ctx.log._attempt_started,
            ctx.deadline,
        )

    @classmethod
    def of_log(cls, log: RequestLog) -> TimeLimits:
        """Return the limits of a call and its first attempt, which began with it."""
        attempt = None if log._children is NO_CHILDREN else 1
        call, own, started = log._call.deadline, log._deadline, log.started
        both = [limit for limit in (call, own) if limit is not None]
        return cls(started, call, attempt, started, min(both, default=None))

    def passed(self, where: str = "") -> Callable[[], ResponseTimeoutError] | None:
        """Return a function that makes the error of the passed limit; None for none.

        Not the exception itself: a variable with it and its traceback form a cycle.
        """
        loop = asyncio.get_running_loop()
        now = loop.time() + _tick(loop)
        deadline = self.call_deadline
        if deadline is not None and deadline <= now:
            seconds = deadline - self.call_started
            return partial(ResponseTimeoutError, f"the call had {seconds:.3f} s{where}")
        deadline = self.attempt_deadline
        if deadline is not None and deadline <= now:
            seconds = deadline - self.attempt_started
            message = f"attempt {self.attempt} had {seconds:.3f} s{where}"
            return partial(AttemptTimeoutError, message)
        return None


def passed_limit(
    ctx: ClientRequestContext, cause: BaseException, where: str = ""
) -> Callable[[], ResponseTimeoutError] | None:
    """Return a function that makes the error of the limit that cut an attempt.

    For a plain ``TimeoutError``, as aiohttp and asyncio raise it. None for a subclass,
    which itself says what timed out, and for an error before any limit has passed.
    """
    return TimeLimits.of(ctx).passed(where) if type(cause) is TimeoutError else None


def watch_body(
    log: RequestLog, limits: TimeLimits, response: aiohttp.ClientResponse
) -> None:
    """Record the failure of a body in its log, and name the limit that it ran into."""
    content = response.content
    # Neither the one reader of all empty bodies, nor a user's class.
    if type(content) is aiohttp.StreamReader:
        content._timer = timer = _BodyTimer(content._timer, log, limits)
        attach(log.root, timer)


class _BodyTimer(BaseTimerContext):
    """aiohttp's timer of a response, which is entered for each wait for the body.

    It has no reference to the stream: the stream refers to it.
    """

    def __init__(
        self, timer: BaseTimerContext, log: RequestLog, limits: TimeLimits
    ) -> None:
        self._timer = timer
        self._limits = limits
        self._log = log
        self._outcome = log._outcome

    def fail(self, cause: BaseException) -> None:
        """Record that reading the body failed."""
        self._log._fail_body(self._outcome, cause)

    def assert_timeout(self) -> None:
        try:
            self._timer.assert_timeout()
        except TimeoutError as timeout:
            raise self._error() from timeout

    def __enter__(self) -> BaseTimerContext:
        try:
            self._timer.__enter__()
        except TimeoutError as timeout:
            raise self._error() from timeout
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        try:
            silenced = self._timer.__exit__(exc_type, exc_val, exc_tb)
        except TimeoutError as timeout:
            raise self._error() from timeout
        if isinstance(exc_val, Exception):
            self.fail(exc_val)
        return silenced

    def _error(self) -> TimeoutError:
        # A decorator may have set a shorter timeout than our limits.
        error = (self._limits.passed(IN_BODY) or TimeoutError)()
        self.fail(error)
        try:
            return error
        finally:
            del error  # its traceback will have this frame: no cycle


def _tick(loop: asyncio.AbstractEventLoop) -> float:
    resolution: float = getattr(loop, "_clock_resolution", _TICK_OF_OTHER_LOOPS)
    return resolution + _NEAR
