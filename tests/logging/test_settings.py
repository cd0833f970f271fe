"""What the logging client takes, refuses and says of itself, and when it writes."""

import logging
import logging.handlers

import pytest
from chains import bad_argument, log_of, log_of_cancelled, retrying, session, silence

from aioretry_smithy import (
    LogFormatter,
    LoggingClient,
    LoggingRpcClient,
    SessionBuilder,
)

DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40


class Sampler:
    """Has the method of a sampler, once there is an object of it."""

    def is_sampled(self, log):
        raise AssertionError("not asked")


async def awaited(log):
    """Would have to be awaited, which nobody does where lines are written."""
    raise AssertionError("not asked")


class Awaited:
    """An object whose answer would have to be awaited."""

    async def __call__(self, log):
        raise AssertionError("not asked")


LEVEL = "a level such as logging.INFO, or a plain function of the log"


SAMPLING = ">= 0 and <= 1, or a plain function of the log"


FORMATTER = "an object with format_request() and format_response()"


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
        " cancelled_log_level=DEBUG,"
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
        (
            "formatter",
            LogFormatter,
            f"{FORMATTER}; call one of its factories or subclasses",
        ),
        ("formatter", LogFormatter.json, f"{FORMATTER}; call it: LogFormatter.json()"),
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


@pytest.mark.parametrize("method", ["format_request", "format_response"])
def test_formatter_is_not_asynchronous(method):
    """Nobody would await it: the line would be that of a coroutine."""

    async def format_later(log):
        raise AssertionError("not asked")

    formatter = LogFormatter.text()
    kind = type("Later", (type(formatter),), {method: staticmethod(format_later)})
    with pytest.raises(ValueError, match=rf"^formatter: .* a plain {method}\(\)\)$"):
        LoggingClient.new_decorator(formatter=kind())


HEADERS = "names of headers, without a colon"


PARAMETERS = "names of query parameters, without ?, &, = and #"


@pytest.mark.parametrize("kind", [LoggingClient, LoggingRpcClient])
@pytest.mark.parametrize(
    ("setting", "name", "expected"),
    [
        *(
            ("sensitive_headers", name, HEADERS)
            for name in ("X-Foo:", "X-Foo: 1", "X Foo", " X-Foo", "X-F\xf6", "X-Foo\n")
        ),
        *(
            ("sensitive_query_parameters", name, PARAMETERS)
            for name in ("?foo", "foo=", "foo=1", "&foo", "#foo", " foo", "foo\n")
        ),
    ],
)
def test_name_that_can_be_none(kind, setting, name, expected):
    """It would hide nothing."""
    with bad_argument(setting, name, expected):
        kind.new_decorator(**{setting: ["X-Bar", name]})


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("sensitive_headers", "x-me"),
        ("sensitive_headers", "X_Me.2"),
        ("sensitive_query_parameters", "user[name]"),
        ("sensitive_query_parameters", "my name"),
        ("sensitive_query_parameters", "größe"),
    ],
)
def test_name_that_can_be_one(setting, name):
    """Names of parameters have hardly a rule."""
    builder = SessionBuilder().decorator(
        LoggingClient.new_decorator(**{setting: [name]})
    )

    assert name in builder.describe()


def test_bad_names_from_a_generator():
    """Names may come from any iterable, which is read once."""
    with pytest.raises(ValueError, match="sensitive_headers"):
        LoggingClient.new_decorator(sensitive_headers=(name for name in ["a", ""]))


RETRYING = retrying(max_total_attempts=3)


@pytest.fixture
def written(logger):
    """A function that tells what was written: the first words."""
    handler = logging.handlers.BufferingHandler(100)
    logger.addHandler(handler)
    return lambda: [record.getMessage().split(":")[0] for record in handler.buffer]


@pytest.fixture
def after_body(logger):
    """A logging client that waits for the end of bodies."""
    return LoggingClient.new_decorator(logger, log_after="body")


PAIR = ["Request", "Response"]


@pytest.mark.parametrize("answer", [200, (200, b"all of it"), 404, TimeoutError()])
async def test_nothing_is_waited_for_where_all_has_come(written, after_body, answer):
    """A failure, and an answer whose body is here: the pair comes at once."""
    await log_of(session([answer], after_body))

    assert PAIR == written()


async def test_cancelled_call_is_told_at_once(written, after_body):
    """Before its headers nothing of a body is to be waited for."""
    await log_of_cancelled(session([silence], after_body), 1.0)

    assert PAIR == written()


async def test_each_attempt_and_the_call_have_a_pair(written, after_body):
    """Inside the retrying client and outside, as at the headers."""
    await log_of(session([503, OSError(), 200], after_body, RETRYING, after_body))

    assert PAIR * 4 == written()


@pytest.mark.parametrize("value", ["end", None, True, "Body", b"body"])
def test_what_it_may_be(value):
    """One of two words."""
    with bad_argument("log_after", value, '"headers" or "body"'):
        LoggingClient.new_decorator(log_after=value)


def test_functions_have_no_such_argument():
    """What a function returns has no body that comes later."""
    with pytest.raises(TypeError, match="log_after"):
        LoggingRpcClient.new_decorator(log_after="body")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("settings", "said"), [({}, ""), ({"log_after": "body"}, ", log_after='body'")]
)
def test_chain_says_when_it_is_not_at_the_headers(settings, said):
    """In its description, as the last of the settings."""
    decorator = LoggingClient.new_decorator(**settings)
    (line,) = [
        line
        for line in SessionBuilder().decorator(decorator).describe().splitlines()
        if "LoggingClient" in line
    ]

    assert line.endswith(f"sensitive_query_parameters=(){said})")
