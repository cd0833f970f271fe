"""Choose the level of a line: a fixed one, or one by its log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeAlias

from .._errors import bad_argument, is_plain_function

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._log.request_log import RequestLog

LogLevel: TypeAlias = "int | Callable[[RequestLog], int | None]"
"""A level, or a plain function of the log that returns one, or None for the default."""

REQUEST_LEVEL = logging.DEBUG
SUCCESS_LEVEL = logging.DEBUG
FAILURE_LEVEL = logging.WARNING

DEFAULTS = {
    "request_log_level": REQUEST_LEVEL,
    "successful_response_log_level": SUCCESS_LEVEL,
    "failure_response_log_level": FAILURE_LEVEL,
}
"""The default level of each line."""


def check_level(name: str, value: object) -> None:
    """Refuse anything but a level or a plain function."""
    if not (is_plain_function(value) or _is_level(value)):
        expected = "a logging level, an int > 0, or a plain function of the log"
        raise bad_argument(name, value, expected)


def level_from(
    name: str, function: Callable[[RequestLog], int | None], log: RequestLog
) -> int:
    """Ask a function for the level of a line.

    Args:
        name: The name of the setting.
        function: The function that was set.
        log: The call, or the attempt, to write about.

    Raises:
        ValueError: It returned neither a level nor None.
    """
    level = function(log)
    if level is None:
        return DEFAULTS[name]
    if not _is_level(level):
        raise bad_argument(f"{name}()", level, "a logging level, an int > 0, or None")
    return level


def level_name(value: LogLevel) -> str:
    """Return the name of a level, or the repr of the function that chooses it."""
    return repr(value) if callable(value) else logging.getLevelName(value)


def _is_level(value: object) -> bool:
    return type(value) is int and value > 0
