"""The settings of a logging client."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from .._errors import bad_argument
from .levels import DEFAULTS, LogLevel, check_level, level_name
from .logger import Logger, level_method
from .sampling import Sampling, sampler_of

if TYPE_CHECKING:
    from .._log.request_log import RequestLog
    from .formatter import LogFormatter


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggingSettings:
    """The checked arguments of :meth:`LoggingClient.new_decorator`."""

    logger: Logger
    request_log_level: LogLevel
    successful_response_log_level: LogLevel
    failure_response_log_level: LogLevel
    success_sampling_rate: Sampling
    failure_sampling_rate: Sampling
    formatter: LogFormatter
    sensitive_headers: tuple[str, ...]
    sensitive_query_parameters: tuple[str, ...]
    random: Callable[[], float]

    def __post_init__(self) -> None:
        _check_methods("logger", self.logger, level_method(self.logger), "log")
        _check_methods("formatter", self.formatter, "format_request", "format_response")
        if not callable(self.random):
            raise bad_argument("random", self.random, "a function without arguments")
        for name in DEFAULTS:
            check_level(name, getattr(self, name))
        self.sampler("success_sampling_rate")
        self.sampler("failure_sampling_rate")

    def sampler(self, name: str) -> Callable[[RequestLog], bool]:
        """Return a function that says whether a call is logged."""
        return sampler_of(name, getattr(self, name), self.random)

    def __str__(self) -> str:
        shown = {
            setting.name: repr(getattr(self, setting.name)) for setting in fields(self)
        }
        shown["logger"] = repr(getattr(self.logger, "name", self.logger))
        shown |= {name: level_name(getattr(self, name)) for name in DEFAULTS}
        del shown["random"]
        return ", ".join(f"{name}={value}" for name, value in shown.items())


def names_of(setting: str, names: object) -> tuple[str, ...]:
    """Return the names of a setting as a tuple; refuse a single string."""
    if isinstance(names, Iterable) and not isinstance(names, str | bytes):
        given = tuple(names)
        if all(isinstance(name, str) and name for name in given):
            return given
    raise bad_argument(setting, names, "names, not a single string")


def _check_methods(name: str, value: object, *methods: str) -> None:
    if not all(callable(getattr(value, method, None)) for method in methods):
        expected = " and ".join(f"{method}()" for method in methods)
        raise bad_argument(name, value, f"an object with {expected}")
