"""Log each call: a request line and a response line."""

from __future__ import annotations

import logging
import random
import sys
import traceback
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from .._call.recorder import cause_of
from .._call.time_limits import time_left
from .._context.client import ClientT, DecoratingClient, Decorator, HttpClient
from .._context.recording import close_result
from .._errors import raised_from, unqualified
from .._log.request_log import RequestLog, log_of
from .._text.mask import Mask
from .formatter import LogFormatter, Sampler, Sampling
from .settings import LoggingSettings, LogLevel, emit, level_check, level_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .._call.call import Call
    from .._call.outcome import Request
    from .._call.record import Record
    from .._context.context import ClientRequestContext
    from .settings import LogAfter, Logger

    Write: TypeAlias = Callable[[Call, Record], None]
    """Writes the lines of a call, or of an attempt of it."""


def write_waiting(call: Call, record: Record) -> None:
    """Write the pending lines of an answer that is about to be replaced.

    A decorator around may send again while the body of the first is open.
    """
    waiting = [each for each in call.waiters if isinstance(each, _Lines)]
    for lines in waiting:
        lines.stop_waiting(record)
    if waiting:
        call.wake()


def write_after_body(call: Call, record: Record, write: Write) -> None:
    """Write the lines of an answer, now or when its body has ended."""
    outcome = record.outcome
    if outcome.ended is not None and outcome.body_ended is None:
        call.wait_with(_Lines(call, record, write))
    else:
        write(call, record)


class _Lines:
    """The lines of a call that are written when its body has ended.

    They wait with the call, whose response nobody keeps for that. aiohttp ends a body
    in the context of whatever opened the connection; so this has the context of the
    call, which the filters of a logger may read.
    """

    __slots__ = ("_call", "_context", "_is_due", "_record", "_write")

    def __init__(self, call: Call, record: Record, write: Write) -> None:
        self._call = call
        self._record = record
        self._context = copy_context()
        self._write = write
        self._is_due = False

    def stop_waiting(self, record: Record) -> None:
        """Have pending lines of *record* written next, without waiting for the body."""
        self._is_due = self._is_due or self._record is record

    def __call__(self) -> None:
        """Write them if the body has ended; otherwise wait on."""
        if sys.is_finalizing():
            # With the interpreter, what handlers need goes too.
            return
        if self._record.outcome.body_ended is None and not self._is_due:
            self._call.wait_with(self)
        else:
            self._context.run(self._write, self._call, self._record)


_LOGGER = logging.getLogger("aioretry_smithy")


@dataclass(frozen=True, slots=True)
class _Kind:
    """The settings for the lines of successes, of failures, or of cancelled calls."""

    level: str
    """The setting that has the level of response lines."""

    highest: int | None
    """The higher of both levels; None where a function of the log has to be asked."""

    sampler: Sampler
    """Picks the calls that are logged."""

    @classmethod
    def of(cls, settings: LoggingSettings, level: str, rate: str) -> _Kind:
        """Make the settings of one kind of calls from those of the client."""
        levels = settings.request_log_level, getattr(settings, level)
        asks = any(callable(each) for each in levels)
        return cls(level, None if asks else max(levels), settings.sampler(rate))


class CallLogger:
    """Writes the lines of calls and of attempts, each once its outcome is known.

    Args:
        settings: The arguments of ``new_decorator()``, checked.
    """

    def __init__(self, settings: LoggingSettings) -> None:
        self._settings = settings
        self._is_on = level_check(settings.logger)
        self._has_reported = False
        self._successes = _Kind.of(
            settings, "successful_response_log_level", "success_sampling_rate"
        )
        self._failures = _Kind.of(
            settings, "failure_response_log_level", "failure_sampling_rate"
        )
        self._cancelled = _Kind.of(
            settings, "cancelled_log_level", "failure_sampling_rate"
        )

    def write(self, call: Call, record: Record) -> None:
        """Write the lines of a call, or of an attempt of it, unless they are off.

        What goes wrong is reported, once, and changes nothing for the call.
        """
        try:
            success = record.ended_well
            if record is call and record.outcome.is_unwanted:
                # That of an attempt does not depend on when its lines are written.
                success = False
            kind = self._successes if success else self._unsuccessful(call, record)
            highest = kind.highest
            if highest is None or self._is_on(highest):
                self._write(log_of(call, record), kind)
        except Exception as error:
            self._report(error, cause_of(record))

    def _unsuccessful(self, call: Call, record: Record) -> _Kind:
        """Say whether an unsuccessful call failed or was cancelled by its caller."""
        cause = cause_of(record)
        if cause is None or isinstance(cause, Exception):
            return self._failures
        # What a deadline has cut is cancelled too, until a client further out names it.
        return self._failures if time_left(call, record) <= 0 else self._cancelled

    def _write(self, log: RequestLog, kind: _Kind) -> None:
        request_level = self._level("request_log_level", log)
        response_level = self._level(kind.level, log)
        is_off = request_level is None and response_level is None
        if is_off or not kind.sampler.is_sampled(log):
            return
        levels, formatter = (request_level, response_level), self._settings.formatter
        pair = kind is not self._successes
        lines = kind.sampler.tell(partial(_lines, formatter, log, levels, pair))
        values = kind.sampler.values_of(log)
        for level, line in lines:
            emit(self._settings.logger, level, line, values)

    def _level(self, name: str, log: RequestLog) -> int | None:
        """Return the level of a line; None where that is off."""
        level = getattr(self._settings, name)
        if callable(level):
            level = level_from(name, level, log)
        return level if self._is_on(level) else None

    def _report(self, error: Exception, cause: BaseException | None) -> None:
        if self._has_reported:
            return
        self._has_reported = True
        _cut_context(error, cause)
        try:
            message = "could not log a call; further errors are not reported"
            _LOGGER.error(message, exc_info=error)
        except Exception:
            with suppress(Exception):
                traceback.print_exception(error)


def _lines(
    formatter: LogFormatter,
    log: RequestLog,
    levels: tuple[int | None, int | None],
    pair: bool,
) -> list[tuple[int, str]]:
    """Format the lines to write, both before the first is written.

    A level that is off is None. Of a *pair*, that line takes the level of the other.
    """
    request_level, response_level = levels
    request = response = None
    if request_level or pair:
        request = formatter.format_request(log)
    if response_level or (pair and request is not None):
        response = formatter.format_response(log)
    if pair and request is not None and response is not None:
        request_level = request_level or response_level
        response_level = response_level or request_level
    return [
        (level, line)
        for level, line in ((request_level, request), (response_level, response))
        if level and line is not None
    ]


def _cut_context(error: BaseException, cause: BaseException | None) -> None:
    """Remove the failure of the call, which may show credentials, from a traceback."""
    for link in list(raised_from(error)):
        if isinstance(link, BaseException) and link.__context__ is cause:
            link.__context__ = None


class CommonLoggingClient(DecoratingClient[ClientT]):
    """Logs calls of any kind.

    Args:
        delegate: The next client inwards.
        settings: The arguments of :meth:`new_decorator`, checked.
    """

    @unqualified
    def __init__(self, delegate: ClientT, settings: LoggingSettings) -> None:
        super().__init__(delegate)
        self._settings = settings
        self._logger = CallLogger(settings)
        self._is_after_body = settings.log_after == "body"
        self.mask: Mask | None = Mask(
            settings.sensitive_headers, settings.sensitive_query_parameters
        )

    async def execute(self, ctx: ClientRequestContext, request: Request) -> Any:
        """Send the request, then write the lines of the log."""
        logger = self._logger
        if self._is_after_body:
            write_waiting(ctx.call, ctx.record)
        try:
            result = await self.delegate.execute(ctx, request)
        except BaseException:
            logger.write(ctx.call, ctx.record)
            raise
        try:
            if self._is_after_body:
                write_after_body(ctx.call, ctx.record, logger.write)
            else:
                logger.write(ctx.call, ctx.record)
        except BaseException:
            close_result(ctx, result)
            raise
        return result

    @classmethod
    @unqualified
    def new_decorator(
        cls,
        logger: Logger | None = None,
        *,
        request_log_level: LogLevel = logging.DEBUG,
        successful_response_log_level: LogLevel = logging.DEBUG,
        failure_response_log_level: LogLevel = logging.WARNING,
        cancelled_log_level: LogLevel = logging.DEBUG,
        success_sampling_rate: Sampling = 1.0,
        failure_sampling_rate: Sampling = 1.0,
        formatter: LogFormatter | None = None,
        sensitive_headers: Iterable[str] = (),
        sensitive_query_parameters: Iterable[str] = (),
        random: Callable[[], float] = random.random,
    ) -> Callable[[ClientT], ClientT]:
        """Make a decorator that logs calls.

        The arguments are those of :meth:`LoggingClient.new_decorator`, except for
        ``log_after``.

        Raises:
            ValueError: An argument is not as described.
        """
        settings = LoggingSettings(
            logger=_LOGGER if logger is None else logger,
            request_log_level=request_log_level,
            successful_response_log_level=successful_response_log_level,
            failure_response_log_level=failure_response_log_level,
            cancelled_log_level=cancelled_log_level,
            success_sampling_rate=success_sampling_rate,
            failure_sampling_rate=failure_sampling_rate,
            formatter=LogFormatter.text() if formatter is None else formatter,
            sensitive_headers=sensitive_headers,
            sensitive_query_parameters=sensitive_query_parameters,
            random=random,
        )

        return cls._decorator(settings)

    @classmethod
    def _decorator(cls, settings: LoggingSettings) -> Callable[[ClientT], ClientT]:
        def decorator(delegate: ClientT) -> Any:
            return cls(delegate, settings)

        return decorator

    def describe(self) -> str:
        """Return one line for ``SessionBuilder.describe()``: name and settings."""
        return f"{type(self).__name__}({self._settings})"


class LoggingClient(CommonLoggingClient[HttpClient]):
    """Writes a line for the request and a line for the response of each call.

    Inside a retrying client it writes one pair of lines per attempt; from the second on
    the request has the header ``armeria-retry-count``. Outside it writes one pair per
    call, the first attempt's request and the last one's response, with
    ``totalAttempts``. After Armeria's ``LoggingClient``.

    Both lines are written once the outcome is known, at the headers of the response or
    at the failure, the request line first; with ``log_after="body"`` when the body has
    ended. No other call comes between them, and sampling can look at the outcome. A
    success is a response with a status < 400; everything else is a failure, and then a
    body that failed too. Outside of the retrying client so is an answer that its
    strategy wanted to retry (``log.is_success`` is False). A call that its caller
    cancelled, as by :func:`asyncio.timeout` or Ctrl-C, is neither: its level is
    ``cancelled_log_level``.

    - Of a success, each line is written whose own level is on.
    - Of a failure or a cancelled call, both lines are written: one whose level is off
      takes the level of the other. If both are off, nothing is written.
    - A formatter may leave a line out; the other one then has its own level.

    Nothing is formatted for a level that is off. Levels and sampling may be functions
    of the log, which then has the outcome. Each record has the log as
    ``record.request_log``, which is None on a pickled record; a logger of
    structlog gets it as the value ``request_log`` of the event. An error in a
    formatter, a handler, a filter or one of the functions is reported once, through the
    logger ``aioretry_smithy``, and changes nothing for the call.

    Args:
        delegate: The next client inwards.
        settings: The arguments of :meth:`new_decorator`, checked.
    """

    _serves = "sessions"
    _counterpart = "LoggingRpcClient"

    @classmethod
    @unqualified
    def new_decorator(
        cls,
        logger: Logger | None = None,
        *,
        request_log_level: LogLevel = logging.DEBUG,
        successful_response_log_level: LogLevel = logging.DEBUG,
        failure_response_log_level: LogLevel = logging.WARNING,
        cancelled_log_level: LogLevel = logging.DEBUG,
        success_sampling_rate: Sampling = 1.0,
        failure_sampling_rate: Sampling = 1.0,
        formatter: LogFormatter | None = None,
        sensitive_headers: Iterable[str] = (),
        sensitive_query_parameters: Iterable[str] = (),
        random: Callable[[], float] = random.random,
        log_after: LogAfter = "headers",
    ) -> Decorator:
        """Make a decorator that logs calls.

        Args:
            logger: Where the lines go: a logger, not its name; also a
                :class:`logging.LoggerAdapter`, a logger of structlog, or any object
                with ``isEnabledFor`` and ``log``. By default
                ``logging.getLogger("aioretry_smithy")``.
            request_log_level: The level of request lines, > 0; DEBUG unless given. Or a
                plain function of the log that returns it, or None for the default.
            successful_response_log_level: The same for response lines of successes.
            failure_response_log_level: The same for response lines of failures;
                WARNING unless given.
            cancelled_log_level: The same for response lines of calls that their caller
                cancelled; DEBUG unless given.
            success_sampling_rate: The share of the successes that is logged, from 0 to
                1. Or a sampler: a plain function of the log, or an object with such a
                method ``is_sampled``, that returns True to log. Called once for both
                lines, and only if a level is on.
            failure_sampling_rate: The same for failures and cancelled calls.
            formatter: Makes the lines; :meth:`LogFormatter.text` by default. Any object
                with its two methods works.
            sensitive_headers: Headers to hide besides the usual ones, in upper or lower
                case.
            sensitive_query_parameters: Query parameters to hide besides the usual ones.
                Every view of the log hides these headers and parameters.
            random: Returns numbers in [0, 1), for sampling.
            log_after: When the lines are written: at the ``"headers"`` of the response,
                or when its ``"body"`` has ended, failed or was released. Then they have
                its length, the whole duration and its failure.

        Raises:
            ValueError: An argument is not as described.

        >>> decorator = LoggingClient.new_decorator(
        ...     logging.getLogger("shop.http"),
        ...     successful_response_log_level=logging.INFO,
        ...     success_sampling_rate=0.01,
        ...     sensitive_headers=["X-Customer"],
        ... )
        >>> LoggingClient.new_decorator(success_sampling_rate=1.5)
        Traceback (most recent call last):
            ...
        ValueError: success_sampling_rate: 1.5 (expected: >= 0 and <= 1, or a plain \
function of the log)
        """
        settings = LoggingSettings(
            logger=_LOGGER if logger is None else logger,
            request_log_level=request_log_level,
            successful_response_log_level=successful_response_log_level,
            failure_response_log_level=failure_response_log_level,
            cancelled_log_level=cancelled_log_level,
            success_sampling_rate=success_sampling_rate,
            failure_sampling_rate=failure_sampling_rate,
            formatter=LogFormatter.text() if formatter is None else formatter,
            sensitive_headers=sensitive_headers,
            sensitive_query_parameters=sensitive_query_parameters,
            random=random,
            log_after=log_after,
        )

        return cls._decorator(settings)
