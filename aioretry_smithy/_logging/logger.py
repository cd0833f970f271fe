"""Write lines to loggers, their adapters, and structlog's loggers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._log.request_log import RequestLog


class _OtherLogger(Protocol):
    """A logger of structlog, which has methods in place of level numbers."""

    def log(self, level: int, event: str, **values: Any) -> Any: ...


Logger: TypeAlias = "logging.Logger | logging.LoggerAdapter[Any] | _OtherLogger"


def level_method(logger: object) -> str:
    """Return the name of the method that tells whether a level is on."""
    # Some loggers of structlog have only the second.
    names = ("isEnabledFor", "is_enabled_for")
    return next((name for name in names if hasattr(logger, name)), names[0])


def level_check(logger: Any) -> Callable[[int], bool]:
    """Return the function that says whether *logger* writes lines of a level."""
    if isinstance(logger, logging.Logger):
        return logger.isEnabledFor

    def is_on(level: int) -> bool:
        # Looked up each time: a logger of structlog may be configured later.
        return bool(getattr(logger, level_method(logger))(level))

    return is_on


def emit(logger: Any, level: int, line: str, log: RequestLog) -> None:
    """Write *line* and have the record, or structlog's event, carry *log*."""
    message: Any = line
    options: Any = {"extra": {"request_log": log}}
    while _only_processes(logger):
        # Such an adapter puts its own ``extra`` in the place of ours.
        message, options = logger.process(message, options)
        options["extra"] = {**(options.get("extra") or {}), "request_log": log}
        logger = logger.logger
    if hasattr(type(logger), "try_unbind"):
        # A logger of structlog takes values by name, and ``extra`` for one of them.
        options = {**options.pop("extra"), **options}
    logger.log(level, message, **options)


def _only_processes(logger: object) -> TypeGuard[logging.LoggerAdapter[Any]]:
    """Whether a logger is an adapter without a ``log()`` of its own."""
    return (
        isinstance(logger, logging.LoggerAdapter)
        and type(logger).log is logging.LoggerAdapter.log
    )
