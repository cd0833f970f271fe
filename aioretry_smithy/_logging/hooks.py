"""Write the lines of each call: for its request and for its response."""

from __future__ import annotations

import logging
import traceback
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from .._call.hooks import Hooks
from .._errors import raised_from
from .._log.request_log import RequestLog, log_of
from .._log.success import ended_well
from .settings import emit, level_check, level_from

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._call.kinds import Result
    from .formatter import LogFormatter
    from .settings import LoggingSettings

_LOGGER = logging.getLogger("aioretry_smithy")

_SUCCESS = "successful_response_log_level"
_FAILURE = "failure_response_log_level"


class LoggingHooks(Hooks):
    """Writes the lines of a call, once the outcome is known.

    Args:
        settings: The arguments of ``new_decorator()``, checked.
    """

    enters = False

    __slots__ = (
        "_failures",
        "_has_reported",
        "_is_on",
        "_may_log_successes",
        "_settings",
        "_successes",
    )

    def __init__(self, settings: LoggingSettings) -> None:
        self._settings = settings
        self._is_on = level_check(settings.logger)
        self._has_reported = False
        request = settings.request_log_level
        response = settings.successful_response_log_level
        # Where a function of the log has to be asked, nobody knows.
        self._may_log_successes: Callable[[], bool] = _always
        if not callable(request) and not callable(response):
            # Where this level is off, so is the other.
            self._may_log_successes = partial(self._is_on, max(request, response))
        self._successes = settings.sampler("success_sampling_rate")
        self._failures = settings.sampler("failure_sampling_rate")

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: None,
        result: Result,
        cause: BaseException | None,
    ) -> None:
        """Write the lines; without a look at the log, if they are off."""
        # The call has a reason to have stopped also where more was wanted than a 200.
        if cause is None and call.stop_reason is None:
            status = (call if scope is call else scope.record).outcome.status
            try:
                if (status is None or status < 400) and not self._may_log_successes():
                    return
            except Exception:  # noqa: S110
                pass  # It is asked again, and reported.
        self._write(log_of(call, scope.record))

    def cancel(
        self, call: Call, scope: Scope, permit: None, cause: BaseException
    ) -> None:
        """Write the lines of a call that was cancelled."""
        self._write(log_of(call, scope.record))

    def _write(self, log: RequestLog) -> None:
        try:
            # That of an attempt does not depend on when its lines are written.
            success = log.is_success if log.attempt is None else ended_well(log)
            settings, is_on = self._settings, self._is_on
            # Without a helper function: every call pays for this, even with both off.
            level = settings.request_log_level
            if callable(level):
                level = level_from("request_log_level", level, log)
            request_level = level if is_on(level) else None
            if success:
                name, level = _SUCCESS, settings.successful_response_log_level
            else:
                name, level = _FAILURE, settings.failure_response_log_level
            if callable(level):
                level = level_from(name, level, log)
            response_level = level if is_on(level) else None
            if request_level is None and response_level is None:
                return
            sampler = self._successes if success else self._failures
            if not sampler.is_sampled(log):
                return
            levels, formatter = (request_level, response_level), settings.formatter
            lines = sampler.tell(partial(_lines, formatter, log, levels, not success))
            values = sampler.values_of(log)
            for level, line in lines:
                emit(settings.logger, level, line, values)
        except Exception as error:
            self._report(error, log.response_cause)

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


def _always() -> bool:
    return True


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
