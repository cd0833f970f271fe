"""What the logging client takes, refuses and says of itself."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from chains import bad_argument

from aioretry_smithy import RequestLog, SessionBuilder
from aioretry_smithy._logging.client import LoggingClient
from aioretry_smithy._logging.formatter import LogFormatter

if TYPE_CHECKING:
    pass
from lines_sink import Sink

DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40


class Sampler:
    """Has the method of a sampler, once there is an object of it."""

    def is_sampled(self, log: RequestLog) -> bool:
        raise AssertionError("not asked")


async def awaited(log: RequestLog) -> bool:
    """Would have to be awaited, which nobody does where lines are written."""
    raise AssertionError("not asked")


class Awaited:
    """An object whose answer would have to be awaited."""

    async def __call__(self, log: RequestLog) -> bool:
        raise AssertionError("not asked")


LEVEL = "a logging level, an int > 0, or a plain function of the log"
SAMPLING = ">= 0 and <= 1, or a plain function of the log"
FORMATTER = "an object with format_request() and format_response()"


@pytest.fixture
def sink():
    """Collect the records."""
    return Sink()


@pytest.fixture
def logger(logger, sink):
    """A logger that writes everything to the sink, and to nothing else."""
    logger.addHandler(sink)
    return logger


def test_describe_lists_the_settings():
    """A client says what it was made with, levels by their names."""
    decorator = LoggingClient.new_decorator(
        logging.LoggerAdapter(logging.getLogger("shop.http"), {}),
        request_log_level=INFO,
        success_sampling_rate=0.1,
        formatter=LogFormatter.json(),
        sensitive_headers=["X-Customer"],
    )
    line = SessionBuilder().decorator(decorator).describe().splitlines()[0]

    assert (
        "LoggingClient(logger='shop.http', request_log_level=INFO,"
        " successful_response_log_level=DEBUG, failure_response_log_level=WARNING,"
        " success_sampling_rate=0.1, failure_sampling_rate=1.0,"
        " formatter=LogFormatter.json(), sensitive_headers=('X-Customer',),"
        " sensitive_query_parameters=())"
    ) == line


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("logger", "shop", "a logger, such as logging.getLogger('shop')"),
        ("request_log_level", "INFO", LEVEL),
        ("request_log_level", True, LEVEL),
        ("request_log_level", INFO + 0.0, LEVEL),
        ("successful_response_log_level", 0, LEVEL),
        ("failure_response_log_level", None, LEVEL),
        ("failure_response_log_level", awaited, LEVEL),
        ("failure_response_log_level", Awaited(), LEVEL),
        ("success_sampling_rate", -0.1, SAMPLING),
        ("success_sampling_rate", True, SAMPLING),
        ("success_sampling_rate", Sampler, SAMPLING),
        ("success_sampling_rate", awaited, SAMPLING),
        ("success_sampling_rate", Awaited(), SAMPLING),
        ("failure_sampling_rate", 1.1, SAMPLING),
        ("failure_sampling_rate", float("nan"), SAMPLING),
        ("failure_sampling_rate", "1", SAMPLING),
        ("formatter", print, FORMATTER),
        ("formatter", LogFormatter, FORMATTER),
        ("sensitive_headers", "X-Customer", "names, not a single string"),
        ("sensitive_headers", [1], "names, not a single string"),
        ("sensitive_query_parameters", b"mail", "names, not a single string"),
        ("sensitive_query_parameters", 1, "names, not a single string"),
        ("random", 0.5, "a function without arguments"),
    ],
)
def test_bad_arguments(name, value, expected):
    """A bad argument is found out where the decorator is made."""
    with bad_argument(name, value, expected):
        LoggingClient.new_decorator(**{name: value})


def test_bad_names_from_a_generator():
    """Names may come from any iterable, which is read once."""
    with pytest.raises(ValueError, match="sensitive_headers"):
        LoggingClient.new_decorator(sensitive_headers=(name for name in ["a", ""]))
