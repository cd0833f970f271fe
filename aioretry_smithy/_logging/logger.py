"""Write lines to loggers, their adapters, and structlog's loggers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from .._log.request_log import RequestLog


class _OtherLogger(Protocol):
    """A logger of structlog, which is not a :class:`logging.Logger`."""

    def log(self, level: int, event: str, **values: object) -> object: ...


Logger: TypeAlias = "logging.Logger | logging.LoggerAdapter[Any] | _OtherLogger"


def level_method(logger: object) -> str:
    """Return the name of the method that tells whether a level is on."""
    # Some of structlog's loggers have only the second.
    names = ("isEnabledFor", "is_enabled_for")
    return next((name for name in names if hasattr(logger, name)), names[0])


def level_check(logger: object) -> Callable[[int], bool]:
    """Return a function that says whether a level of *logger* is on."""
    if isinstance(logger, logging.Logger):
        return logger.isEnabledFor

    def is_on(level: int) -> bool:
        # Looked up each time: a logger of structlog may be configured later.
        return bool(getattr(logger, level_method(logger))(level))

    return is_on


def emit(logger: Logger, level: int, line: str, log: RequestLog) -> None:
    """Write *line*, with *log* on the record or in structlog's event."""
    options: MutableMapping[str, Any] = {"extra": {"request_log": log}}
    while _only_processes(logger):
        # Such an adapter replaces our ``extra`` by its own.
        line, options = logger.process(line, options)
        options["extra"] = {**(options.get("extra") or {}), "request_log": log}
        logger = logger.logger
    if hasattr(type(logger), "try_unbind"):
        # A logger of structlog takes values by name, and ``extra`` for one of them.
        options = {**options.pop("extra"), **options}
    logger.log(level, line, **options)


def _only_processes(logger: object) -> TypeGuard[logging.LoggerAdapter[Any]]:
    """Say whether a logger is an adapter without a ``log()`` of its own."""
    return (
        isinstance(logger, logging.LoggerAdapter)
        and type(logger).log is logging.LoggerAdapter.log
    )
