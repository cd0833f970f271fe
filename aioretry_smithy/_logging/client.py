"""The decorator that writes a request line and a response line."""

from __future__ import annotations

import logging
import random
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from .._client import DecoratingClient
from .._errors import bad_argument, is_finite, raised_from
from .._mask import Mask
from .formatter import LogFormatter
from .logger import emit, level_check, level_method

if TYPE_CHECKING:
    import aiohttp

    from .._client import Decorator, HttpClient
    from .._context import ClientRequestContext
    from .._log import RequestLog
    from .._request import HttpRequest
    from .logger import Logger

_LOGGER = logging.getLogger("aioretry_smithy")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggingSettings:
    """What :meth:`LoggingClient.new_decorator` was given, checked."""

    logger: Logger
    request_log_level: int
    successful_response_log_level: int
    failure_response_log_level: int
    success_sampling_rate: float
    failure_sampling_rate: float
    formatter: LogFormatter
    sensitive_headers: tuple[str, ...]
    sensitive_query_parameters: tuple[str, ...]
    random: Callable[[], float]

    def __post_init__(self) -> None:
        _check_methods("logger", self.logger, level_method(self.logger), "log")
        _check_methods("formatter", self.formatter, "format_request", "format_response")
        if not callable(self.random):
            raise bad_argument("random", self.random, "a function without arguments")
        for setting in fields(self):
            value = getattr(self, setting.name)
            if setting.name.endswith("level") and not (
                type(value) is int and value > 0
            ):
                raise bad_argument(setting.name, value, "a logging level, an int > 0")
            if setting.name.endswith("rate") and not (
                is_finite(value) and 0 <= value <= 1
            ):
                raise bad_argument(setting.name, value, ">= 0 and <= 1")

    def __str__(self) -> str:
        shown = {
            setting.name: repr(getattr(self, setting.name)) for setting in fields(self)
        }
        shown["logger"] = repr(getattr(self.logger, "name", self.logger))
        for name in shown:
            if name.endswith("level"):
                shown[name] = logging.getLevelName(getattr(self, name))
        del shown["random"]
        return ", ".join(f"{name}={value}" for name, value in shown.items())


class LoggingClient(DecoratingClient):
    """Writes a line for the request and a line for the response of each call it sees.

    Inside a retrying client that is one pair of lines per attempt, from the second on
    with ``armeria-retry-count`` among the headers of the request; outside it is one
    pair per call, the first attempt's request and the last one's response, with
    ``totalAttempts``. After Armeria's ``LoggingClient``.

    Both lines are written once the outcome is known, at the headers of the response or
    at the failure, the request line first. Nothing of another call comes between them,
    and sampling can look at the outcome. A success is a response with a status < 400;
    everything else is a failure, a cancelled call too.

    - Of a success each line is written whose own level is on.
    - Of a failure both lines are written, always: one whose level is off takes the
      level of the other. Where both are off, nothing is written.
    - A formatter may leave a line out; the other one then has its own level.

    Nothing is formatted for a level that is off. Each record has the log as
    ``record.request_log``, which is None where a record was pickled; a logger of
    structlog gets it as the value ``request_log`` of the event. An error in a
    formatter, a handler or a filter is reported once, through the logger
    ``aioretry_smithy``, and changes nothing for the call.

    Args:
        delegate: The next client inwards.
        settings: The arguments of :meth:`new_decorator`, checked.
    """

    def __init__(self, delegate: HttpClient, settings: LoggingSettings) -> None:
        super().__init__(delegate)
        self._settings = settings
        self._is_on = level_check(settings.logger)
        self._has_reported = False
        self.mask: Mask | None = Mask(
            settings.sensitive_headers, settings.sensitive_query_parameters
        )

    @classmethod
    def new_decorator(
        cls,
        logger: Logger | None = None,
        *,
        request_log_level: int = logging.DEBUG,
        successful_response_log_level: int = logging.DEBUG,
        failure_response_log_level: int = logging.WARNING,
        success_sampling_rate: float = 1.0,
        failure_sampling_rate: float = 1.0,
        formatter: LogFormatter | None = None,
        sensitive_headers: Iterable[str] = (),
        sensitive_query_parameters: Iterable[str] = (),
        random: Callable[[], float] = random.random,
    ) -> Decorator:
        """Make a decorator for a session builder.

        Args:
            logger: Where the lines go; a :class:`logging.LoggerAdapter`, a logger of
                structlog or anything else with ``isEnabledFor`` and ``log`` will do. By
                default the logger ``aioretry_smithy``.
            request_log_level: The level of request lines, > 0.
            successful_response_log_level: That of the response lines of successes, > 0.
            failure_response_log_level: That of the response lines of failures, > 0.
            success_sampling_rate: The part of the successes that is logged, from 0 to
                1. Chance decides once for both lines.
            failure_sampling_rate: The same for failures.
            formatter: Makes the lines; :meth:`LogFormatter.text` by default. Anything
                with its two methods will do.
            sensitive_headers: Headers to hide besides the usual ones, in any case.
            sensitive_query_parameters: Query parameters to hide besides the usual ones.
                What is hidden here is hidden in every view of the log.
            random: Returns numbers in [0, 1), for sampling.

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
        ValueError: success_sampling_rate: 1.5 (expected: >= 0 and <= 1)
        """
        settings = LoggingSettings(
            logger=_LOGGER if logger is None else logger,
            request_log_level=request_log_level,
            successful_response_log_level=successful_response_log_level,
            failure_response_log_level=failure_response_log_level,
            success_sampling_rate=success_sampling_rate,
            failure_sampling_rate=failure_sampling_rate,
            formatter=LogFormatter.text() if formatter is None else formatter,
            sensitive_headers=_names("sensitive_headers", sensitive_headers),
            sensitive_query_parameters=_names(
                "sensitive_query_parameters", sensitive_query_parameters
            ),
            random=random,
        )

        def decorator(delegate: HttpClient) -> HttpClient:
            return cls(delegate, settings)

        return decorator

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send *request* and log what became of it."""
        try:
            response = await self.delegate.execute(ctx, request)
        except BaseException:
            self._write(ctx.log)
            raise
        self._write(ctx.log)
        return response

    def describe(self) -> str:
        """Return one line for ``SessionBuilder.describe()``: name and settings."""
        return f"{type(self).__name__}({self._settings})"

    def _write(self, log: RequestLog) -> None:
        try:
            status = log.response_status
            success = status is not None and status < 400 and log.response_cause is None
            settings, is_on = self._settings, self._is_on
            level = settings.request_log_level
            request_level = level if is_on(level) else None
            if success:
                level = settings.successful_response_log_level
            else:
                level = settings.failure_response_log_level
            response_level = level if is_on(level) else None
            if request_level is None and response_level is None:
                return
            if not self._is_sampled(success=success):
                return
            lines = _lines(
                settings.formatter, log, request_level, response_level, pair=not success
            )
            for level, line in lines:
                emit(settings.logger, level, line, log)
        except Exception as error:
            self._report(error, log.response_cause)

    def _is_sampled(self, *, success: bool) -> bool:
        settings = self._settings
        return settings.random() < (
            settings.success_sampling_rate
            if success
            else settings.failure_sampling_rate
        )

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
    request_level: int | None,
    response_level: int | None,
    *,
    pair: bool,
) -> list[tuple[int, str]]:
    """Format what is to be written, all of it before anything is.

    Args:
        formatter: What to ask for the lines.
        log: What they are about.
        request_level: The level of the request line, None where it is off.
        response_level: That of the response line; not both are None.
        pair: Whether one line brings the other along at its own level.
    """
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
    """Take the failure of the call, which may show credentials, off a traceback."""
    for link in list(raised_from(error)):
        if isinstance(link, BaseException) and link.__context__ is cause:
            link.__context__ = None


def _names(setting: str, names: object) -> tuple[str, ...]:
    if isinstance(names, Iterable) and not isinstance(names, str | bytes):
        given = tuple(names)
        if all(isinstance(name, str) and name for name in given):
            return given
    raise bad_argument(setting, names, "names, not a single string")


def _check_methods(name: str, value: object, *methods: str) -> None:
    if not all(callable(getattr(value, method, None)) for method in methods):
        expected = " and ".join(f"{method}()" for method in methods)
        raise bad_argument(name, value, f"an object with {expected}")
