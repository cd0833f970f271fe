"""What newcomers write in the place of something else, and what they are told."""

import asyncio
import dataclasses
import warnings

import aiohttp
import pytest
from chains import NOW, URL, bad_argument, raises_exactly, session

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    HedgingClient,
    HedgingDelay,
    RetryBudget,
    RetryConfig,
    RetryConfigMapping,
    RetryingClient,
    RetryingRpcClient,
    RetryRule,
    RetryStrategy,
    RetryStrategyWithContent,
    SessionBuilder,
    request_options,
    rpc,
    smithy,
)
from aioretry_smithy.testing import ScriptedTransport

NEVER = RetryStrategy.never()
KINDS = "a RetryStrategy, a RetryStrategyWithContent or a Smithy strategy"


class Mine(RetryStrategy):
    def should_retry(self, ctx, cause):
        return None

    @classmethod
    def made(cls):
        return cls()


class Slow(Mine):
    def __init__(self, backoff, *more, **named):
        self.backoff = backoff


class Looking(RetryStrategyWithContent):
    def should_retry(self, ctx, cause, content):
        return None


RETRYING = {
    "a client": lambda **named: RetryingClient.new_decorator(NEVER, **named),
    "a function": lambda **named: RetryingRpcClient.new_decorator(NEVER, **named),
    "settings": lambda **named: RetryConfig(NEVER, **named),
    "standard settings": RetryConfig.standard,
    "a chain": SessionBuilder.standard,
}
TAKERS = {
    "a client": RetryingClient.new_decorator,
    "a function": RetryingRpcClient.new_decorator,
    "settings": RetryConfig,
    "standard settings": lambda strategy: RetryConfig.standard(strategy=strategy),
    "a chain": lambda strategy: SessionBuilder.standard(strategy=strategy),
}


@pytest.mark.parametrize("make", RETRYING.values(), ids=RETRYING)
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("max_attempts", "perhaps 'max_total_attempts'"),
        ("attempts", "perhaps 'max_total_attempts'"),
        ("retries", "'max_total_attempts', which counts the first attempt too"),
        ("max_retries", "'max_total_attempts', which counts the first attempt too"),
        ("backoff", "perhaps 'strategy'"),
        ("before_sleep", "perhaps 'listeners'"),
        ("on_retry", "perhaps 'listeners'"),
        ("atempt_timeout", "perhaps 'attempt_timeout'"),
        ("maxTotalAttempts", "perhaps 'max_total_attempts'"),
    ],
)
def test_name_that_another_library_has_is_refused_with_ours(make, name, meant):
    """The same answer wherever the settings of retries are given."""
    with pytest.raises(ValueError, match=rf"^argument: '{name}' \(expected: ") as error:
        make(**{name: 3})

    assert str(error.value).endswith(f"{meant})")


@pytest.mark.parametrize(
    "make", [make for kind, make in RETRYING.items() if kind != "a chain"]
)
def test_timeout_is_that_of_an_attempt_where_attempts_are_set(make):
    """It is the name in tenacity, in Java and in most of the others."""
    expected = "an argument of RetryConfig, perhaps 'attempt_timeout'"
    with bad_argument("argument", "timeout", expected):
        make(timeout=3)


@pytest.mark.parametrize("make", [SessionBuilder, SessionBuilder.standard])
def test_seconds_are_no_timeout_of_a_session(make):
    """Neither for aiohttp; both settings that take seconds are named."""
    expected = (
        "an aiohttp.ClientTimeout; response_timeout takes the seconds of a call, and"
        " attempt_timeout those of an attempt"
    )
    with bad_argument("timeout", 3, expected):
        make(timeout=3)


@pytest.mark.parametrize("name", ["retries", "max_attempts"])
def test_session_without_retries_says_who_has_them(name):
    """A builder takes the arguments of a session, a chain has those of retries."""
    has = "SessionBuilder.standard() has 'max_total_attempts'"
    expected = f"an argument of aiohttp.ClientSession; {has}"
    with bad_argument("argument", name, expected):
        SessionBuilder(**{name: 3})


def test_name_that_resembles_none_is_refused_alone():
    """A guess would mislead."""
    expected = "argument: 'xyzzy' (expected: an argument of RetryConfig)"
    with raises_exactly(expected):
        RetryConfig(NEVER, xyzzy="S3CR3T")


UNCALLED = {
    "class": (Mine, "call it: Mine()"),
    "class with settings": (Slow, "call it: Slow(...)"),
    "class with content": (Looking, "call it: Looking()"),
    "rule": (RetryRule, "call it: RetryRule()"),
    "abstract class": (RetryStrategy, "call it: RetryStrategy.failsafe()"),
    "factory": (RetryStrategy.failsafe, "call it: RetryStrategy.failsafe()"),
    "factory of a class": (Mine.made, "call it: Mine.made()"),
    "factory with settings": (
        RetryStrategy.on_status,
        "call it: RetryStrategy.on_status(...)",
    ),
    "factory of settings": (RetryConfig.standard, "call it: RetryConfig.standard()"),
    "class of settings": (RetryConfig, "call it: RetryConfig(...)"),
    "strategy of Smithy's": (
        smithy.StandardRetryStrategy,
        "call it: StandardRetryStrategy()",
    ),
    "function": (lambda ctx, cause: None, "write RetryStrategy.on_status(function)"),
    "backoff": (Backoff.fixed(1.0), "write RetryStrategy.failsafe(backoff)"),
    "factory of backoffs": (Backoff.of_default, "call it: Backoff.of_default()"),
    "class of backoffs": (Backoff, "call one of its factories or subclasses"),
}


@pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
@pytest.mark.parametrize(("given", "hint"), UNCALLED.values(), ids=UNCALLED)
def test_what_was_not_called_is_told(take, given, hint):
    """A class, or a method that makes a strategy, is one call away."""
    with pytest.raises(ValueError) as error:
        take(given)

    message = str(error.value)
    assert message.startswith(f"strategy: {given!r} (expected: {KINDS}; {hint}")


@pytest.mark.parametrize("given", [None, 3, "failsafe", object, object()])
def test_what_has_nothing_to_do_with_it_gets_no_hint(given):
    """The kinds of strategies are all there is to say."""
    with pytest.raises(ValueError) as error:
        RetryingClient.new_decorator(given)

    assert f"strategy: {given!r} (expected: {KINDS})" == str(error.value)


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda: RetryStrategy.failsafe(Backoff.fixed), "Backoff.fixed(...)"),
        (lambda: RetryRule(statuses=[503], backoff=Backoff.of), "Backoff.of(...)"),
        (lambda: RetryConfig(NEVER, limiter=RetryBudget), "RetryBudget()"),
        (
            lambda: RetryConfig(NEVER, limiter=RetryBudget.per_host),
            "RetryBudget.per_host()",
        ),
        (lambda: request_options(retry=RetryConfig), "RetryConfig(...)"),
        (lambda: request_options(retry=RetryConfig.no_retry), "RetryConfig.no_retry()"),
        (
            lambda: SessionBuilder.standard(retrying=RetryConfig.standard),
            "RetryConfig.standard()",
        ),
        (
            lambda: SessionBuilder.standard(retrying=RetryConfigMapping.per_host),
            "RetryConfigMapping.per_host(...)",
        ),
        (
            lambda: HedgingClient.new_decorator(HedgingDelay.percentile),
            "HedgingDelay.percentile()",
        ),
    ],
)
def test_other_parts_that_were_not_called_are_told(make, hint):
    """Backoffs, budgets, settings and delays are made in the same way."""
    with pytest.raises(ValueError) as error:
        make()

    assert str(error.value).endswith(f"; call it: {hint})")


@pytest.mark.parametrize(
    "decorator",
    [RetryConfig, RetryStrategy, Mine, CircuitBreaker, SessionBuilder, NEVER],
)
def test_policy_in_the_place_of_a_decorator_is_refused_at_once(decorator):
    """It was called with a client when the session was built, and failed there."""
    usual = "such as RetryingClient.new_decorator(...) returns"
    expected = f"a function of a client, {usual}"
    with bad_argument("decorator", decorator, expected):
        SessionBuilder().decorator(decorator)


async def test_mapping_is_taken_where_a_strategy_is():
    """It finds the settings of each call, as by ``new_mapped_decorator()``."""
    config = RetryConfig(RetryStrategy.on_server_error_status(NOW), 2)
    mapping = RetryConfigMapping.per_method(
        lambda method: config if method == "GET" else RetryConfig.no_retry()
    )
    transport = ScriptedTransport([503] * 3)
    async with session(transport, RetryingClient.new_decorator(mapping)) as client:
        for method in ("GET", "PUT"):
            await client.request(method, URL)

    assert ["GET", "GET", "PUT"] == [each.method for each in transport.requests]


async def test_mapping_of_calls_is_taken_where_a_strategy_is():
    """A function has keys of its own."""
    mapping = RetryConfigMapping.of(
        lambda ctx, request: request.args[0],
        lambda region: RetryConfig(RetryRule(exceptions=[OSError], backoff=NOW), 3),
    )
    regions = []

    @rpc(RetryingRpcClient.new_decorator(mapping))
    async def fetch(region):
        regions.append(region)
        raise OSError

    with pytest.raises(OSError):
        await fetch("eu")

    assert ["eu"] * 3 == regions


@pytest.mark.parametrize("client", [RetryingClient, RetryingRpcClient])
@pytest.mark.parametrize("settings", [{"attempt_timeout": 1.0}, {"max_attempts": 3}])
def test_settings_beside_a_mapping_are_refused(client, settings):
    """The mapping has them, for each key."""
    mapping = RetryConfigMapping.of(str, lambda key: RetryConfig.no_retry())
    with pytest.raises(ValueError) as error:
        client.new_decorator(mapping, **settings)

    expected = f"settings: {settings!r} (expected: none beside a RetryConfigMapping)"
    assert expected == str(error.value)


@pytest.mark.parametrize("make", [SessionBuilder, SessionBuilder.standard])
def test_building_without_a_loop_says_what_to_write(make):
    """Aiohttp's own words are there, as the cause."""
    expected = r"^build\(\) needs a running event loop.*'async with builder\.build\(\)"
    with pytest.raises(RuntimeError, match=expected) as error:
        make("http://h").build()

    assert "no running event loop" == str(error.value.__cause__)


def test_session_on_a_connector_needs_no_running_loop():
    """The connector knows the loop, and aiohttp goes by that."""

    async def connect():
        return aiohttp.TCPConnector()

    async def close(session):
        await session.close()

    with asyncio.Runner() as runner:
        session = SessionBuilder(connector=runner.run(connect())).build()
        runner.run(close(session))

    assert session.closed


async def test_other_errors_of_a_session_stay_as_they_are():
    """Such as that of a connector of another loop."""
    other = asyncio.new_event_loop()
    async with aiohttp.TCPConnector() as connector:
        builder = SessionBuilder(connector=connector, loop=other)
        with pytest.raises(RuntimeError, match="has to use same event loop"):
            builder.build()
    other.close()


LONG = {
    "exponential": (lambda: Backoff.exponential(200, 10_000), "initial_delay", 200),
    "fibonacci": (lambda: Backoff.fibonacci(200, 10_000), "initial_delay", 200),
    "fixed": (lambda: Backoff.fixed(101), "delay", 101),
    "random": (lambda: Backoff.random(1_000, 2_000), "min_delay", 1000),
    "config": (lambda: RetryConfig(NEVER, 3, 3_000), "attempt_timeout", 3000),
    "standard settings": (
        lambda: RetryConfig.standard(attempt_timeout=3_000),
        "attempt_timeout",
        3000,
    ),
    "a client": (
        lambda: RetryingClient.new_decorator(NEVER, 3, 3_000),
        "attempt_timeout",
        3000,
    ),
    "a function": (
        lambda: RetryingRpcClient.new_decorator(NEVER, attempt_timeout=3_000),
        "attempt_timeout",
        3000,
    ),
    "a chain": (
        lambda: SessionBuilder.standard(attempt_timeout=200),
        "attempt_timeout",
        200,
    ),
    "a changed copy": (
        lambda: dataclasses.replace(RetryConfig(NEVER), attempt_timeout=200),
        "attempt_timeout",
        200,
    ),
    "a hedge": (lambda: HedgingClient.new_decorator(200), "delay", 200),
}


@pytest.mark.parametrize(("make", "name", "value"), LONG.values(), ids=LONG)
def test_milliseconds_are_told(make, name, value):
    """Once, at the line that has them, with both ways to write what is meant."""
    with pytest.warns(RuntimeWarning) as caught:
        make()

    (warning,) = caught
    assert str(warning.message) == (
        f"{name}: {value} s; units are seconds. Write {value / 1000:g} if you mean"
        f" milliseconds, and {value}.0 if you mean seconds"
    )
    assert __file__ == warning.filename
    assert make.__code__.co_firstlineno == warning.lineno


@pytest.mark.parametrize(
    "make",
    [
        lambda: Backoff.exponential(200.0, 10_000.0),
        lambda: Backoff.exponential(100, 10_000),
        lambda: Backoff.fixed(300.0),
        lambda: Backoff.random(0.0, 10_000),
        lambda: Backoff.of("exponential=200:10000"),
        lambda: Backoff.of("fixed=200s"),
        lambda: RetryConfig(NEVER, 3, 100),
        lambda: RetryConfig(NEVER, 3, 120.0),
        lambda: RetryConfig(NEVER, max_retry_after=3600),
        lambda: SessionBuilder().response_timeout(3600),
        lambda: HedgingClient.new_decorator(200.0),
    ],
)
def test_seconds_that_are_written_as_such_are_believed(make):
    """A fraction, a unit, or what is usual for a whole call."""
    assert make() is not None


def test_warning_is_shown_once_for_a_line():
    """A mapping makes the settings of each host there."""
    with warnings.catch_warnings(record=True, action="default") as caught:
        for _ in range(3):
            Backoff.fixed(200)

    assert 1 == len(caught)
