"""Check the settings of a logging client, and write a line by its logger."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeGuard

from .._errors import bad_argument, call_it, is_plain_function
from .._request.arguments import is_header_name
from .formatter import LogFormatter, Sampler, Sampling

if TYPE_CHECKING:
    from .._log.request_log import RequestLog


# What stands between parameters, and blanks at an end.
_NO_PARAMETER: Final = re.compile(r"[?&=#]|\A\s|\s\Z")

_HIDDEN: Final[tuple[tuple[str, Callable[[str], bool], str], ...]] = (
    ("sensitive_headers", is_header_name, "names of headers, without a colon"),
    (
        "sensitive_query_parameters",
        lambda name: _NO_PARAMETER.search(name) is None,
        "names of query parameters, without ?, &, = and #",
    ),
)
"""The settings of names to hide: which names are possible, and that in words."""


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


def emit(logger: Logger, level: int, line: str, values: Mapping[str, object]) -> None:
    """Write *line*, with *values* on the record or in structlog's event."""
    options: MutableMapping[str, Any] = {"extra": {**values}}
    while _only_processes(logger):
        # Such an adapter replaces our ``extra`` by its own.
        line, options = logger.process(line, options)
        options["extra"] = {**(options.get("extra") or {}), **values}
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


LogLevel: TypeAlias = "int | Callable[[RequestLog], int | None]"
"""A level, or a plain function of the log that returns one, or None for the default."""

DEFAULTS = {
    "request_log_level": logging.DEBUG,
    "successful_response_log_level": logging.DEBUG,
    "failure_response_log_level": logging.WARNING,
    "cancelled_log_level": logging.DEBUG,
}
"""The default level of each line."""


LogAfter: TypeAlias = Literal["headers", "body"]
"""What the lines of a call are written after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggingSettings:
    """The checked arguments of :meth:`LoggingClient.new_decorator`."""

    logger: Logger
    request_log_level: LogLevel
    successful_response_log_level: LogLevel
    failure_response_log_level: LogLevel
    cancelled_log_level: LogLevel
    success_sampling_rate: Sampling
    failure_sampling_rate: Sampling
    formatter: LogFormatter
    sensitive_headers: Iterable[str]
    sensitive_query_parameters: Iterable[str]
    random: Callable[[], float]
    log_after: LogAfter = "headers"

    def __post_init__(self) -> None:
        for name, is_name, expected in _HIDDEN:
            given = _names(name, getattr(self, name))
            for each in given:
                if not is_name(each):
                    raise bad_argument(name, each, expected)
            object.__setattr__(self, name, given)
        if not _has_methods(self.logger, level_method(self.logger), "log"):
            expected = "a logger, such as logging.getLogger('shop')"
            raise bad_argument("logger", self.logger, expected)
        _check_formatter(self.formatter)
        if not callable(self.random):
            raise bad_argument("random", self.random, "a function without arguments")
        for name in DEFAULTS:
            if not (
                is_plain_function(level := getattr(self, name)) or _is_level(level)
            ):
                expected = (
                    "a level such as logging.INFO, or a plain function of the log"
                )
                raise bad_argument(name, level, expected)
        self.sampler("success_sampling_rate")
        self.sampler("failure_sampling_rate")
        if self.log_after not in ("headers", "body"):
            raise bad_argument("log_after", self.log_after, '"headers" or "body"')

    def sampler(self, name: str) -> Sampler:
        """Return what picks the calls of a setting."""
        return Sampler.of(name, getattr(self, name), self.random)

    def __str__(self) -> str:
        shown = {
            setting.name: repr(getattr(self, setting.name)) for setting in fields(self)
        }
        shown["logger"] = repr(getattr(self.logger, "name", self.logger))
        shown |= {name: _level_name(getattr(self, name)) for name in DEFAULTS}
        del shown["random"]
        if self.log_after == "headers":
            # That of a function has no other end.
            del shown["log_after"]
        return ", ".join(f"{name}={value}" for name, value in shown.items())


def _names(setting: str, names: object) -> tuple[str, ...]:
    """Return the names of a setting as a tuple; refuse a single string."""
    if isinstance(names, Iterable) and not isinstance(names, str | bytes):
        given = tuple(names)
        if all(isinstance(name, str) and name for name in given):
            return given
    raise bad_argument(setting, names, "names, not a single string")


def _check_formatter(formatter: object) -> None:
    """Refuse what cannot make lines, or would have to be awaited for them."""
    methods = "format_request", "format_response"
    if not _has_methods(formatter, *methods):
        expected = "an object with format_request() and format_response()"
        expected += call_it(formatter, LogFormatter)
        raise bad_argument("formatter", formatter, expected)
    for method in methods:
        if not is_plain_function(getattr(formatter, method)):
            raise bad_argument("formatter", formatter, f"with a plain {method}()")


def _has_methods(value: object, *methods: str) -> bool:
    if isinstance(value, type):
        # A class has the functions, but no object to call them with.
        return False
    return all(callable(getattr(value, method, None)) for method in methods)


def level_from(
    name: str, function: Callable[[RequestLog], int | None], log: RequestLog
) -> int:
    """Ask the function of a setting for the level of a line."""
    level = function(log)
    if level is None:
        return DEFAULTS[name]
    if not _is_level(level):
        raise bad_argument(f"{name}()", level, "a level such as logging.INFO, or None")
    return level


def _level_name(value: LogLevel) -> str:
    return repr(value) if callable(value) else logging.getLevelName(value)


def _is_level(value: object) -> bool:
    return type(value) is int and value > 0
