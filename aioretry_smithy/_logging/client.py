"""Log each call: a request line and a response line."""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Any

from .._context.client import ClientT, DecoratingClient, HttpClient
from .._context.recording import close_result
from .._errors import unqualified
from .._masking.mask import Mask
from .after_body import write_after_body, write_waiting
from .call_logger import CallLogger
from .formatter import LogFormatter
from .settings import (
    CANCELLED_LEVEL,
    FAILURE_LEVEL,
    REQUEST_LEVEL,
    SUCCESS_LEVEL,
    LoggingSettings,
    LogLevel,
    header_names,
    parameter_names,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .._call.outcome import Request
    from .._context.client import Decorator
    from .._context.context import ClientRequestContext
    from .sampling import Sampling
    from .settings import LogAfter, Logger

_LOGGER = logging.getLogger("aioretry_smithy")


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
        """Send the request, then write the lines about it."""
        write = self._logger.write
        if self._is_after_body:
            write_waiting(ctx.call, ctx.record)
        try:
            result = await self.delegate.execute(ctx, request)
        except BaseException:
            write(ctx.call, ctx.record)
            raise
        try:
            if self._is_after_body:
                write_after_body(ctx.call, ctx.record, write)
            else:
                write(ctx.call, ctx.record)
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
        request_log_level: LogLevel = REQUEST_LEVEL,
        successful_response_log_level: LogLevel = SUCCESS_LEVEL,
        failure_response_log_level: LogLevel = FAILURE_LEVEL,
        cancelled_log_level: LogLevel = CANCELLED_LEVEL,
        success_sampling_rate: Sampling = 1.0,
        failure_sampling_rate: Sampling = 1.0,
        formatter: LogFormatter | None = None,
        sensitive_headers: Iterable[str] = (),
        sensitive_query_parameters: Iterable[str] = (),
        random: Callable[[], float] = random.random,
    ) -> Callable[[ClientT], ClientT]:
        """Make a decorator.

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
            sensitive_headers=header_names("sensitive_headers", sensitive_headers),
            sensitive_query_parameters=parameter_names(
                "sensitive_query_parameters", sensitive_query_parameters
            ),
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
        request_log_level: LogLevel = REQUEST_LEVEL,
        successful_response_log_level: LogLevel = SUCCESS_LEVEL,
        failure_response_log_level: LogLevel = FAILURE_LEVEL,
        cancelled_log_level: LogLevel = CANCELLED_LEVEL,
        success_sampling_rate: Sampling = 1.0,
        failure_sampling_rate: Sampling = 1.0,
        formatter: LogFormatter | None = None,
        sensitive_headers: Iterable[str] = (),
        sensitive_query_parameters: Iterable[str] = (),
        random: Callable[[], float] = random.random,
        log_after: LogAfter = "headers",
    ) -> Decorator:
        """Make a decorator.

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
            sensitive_headers=header_names("sensitive_headers", sensitive_headers),
            sensitive_query_parameters=parameter_names(
                "sensitive_query_parameters", sensitive_query_parameters
            ),
            random=random,
            log_after=log_after,
        )

        return cls._decorator(settings)
