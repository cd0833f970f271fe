"""Write the lines of a call: for its request and for its response."""

from __future__ import annotations

import logging
import traceback
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from .._call.recorder import cause_of
from .._call.time_limits import time_left
from .._errors import raised_from
from .._log.request_log import RequestLog, log_of
from .settings import emit, level_check, level_from

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.record import Record
    from .formatter import LogFormatter
    from .sampling import Sampler
    from .settings import LoggingSettings

_LOGGER = logging.getLogger("aioretry_smithy")


class _Kind(NamedTuple):
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

    __slots__ = (
        "_cancelled",
        "_failures",
        "_has_reported",
        "_is_on",
        "_settings",
        "_successes",
    )

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
            if kind.highest is None or self._is_on(kind.highest):
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
