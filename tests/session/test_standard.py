"""The standard chain: what is in it, what may be replaced, what it refuses."""

import asyncio
import inspect
import math
import random
import re

import aiohttp
import pytest
from chains import URL, bad_argument, now, raises_exactly, standard_session

from aioretry_smithy import (
    Backoff,
    CircuitBreakerClient,
    DecoratingClient,
    EndpointGroup,
    FailFastError,
    LoggingClient,
    RateLimitingClient,
    RequestLog,
    RetryBudget,
    RetryConfig,
    RetryConfigMapping,
    RetryingClient,
    RetryStopReason,
    RetryStrategy,
    SessionBuilder,
    decorate_standard,
    unwrap,
)
from aioretry_smithy._session.builder import SessionArguments
from aioretry_smithy._session.standard import STANDARD_SETTINGS, StandardSettings
from aioretry_smithy.testing import ScriptedTransport


async def outcome_of(client, method="GET"):
    async with client.request(method, URL) as response:
        return response.status, RequestLog.of(response)


def test_description_says_it_all():
    """From the outside in, with every setting that has an effect."""
    described = SessionBuilder.standard("https://api.example.com").describe()

    assert [
        (
            "LoggingClient(logger='aioretry_smithy', request_log_level=DEBUG, "
            "successful_response_log_level=DEBUG, failure_response_log_level=WARNING, "
            "cancelled_log_level=DEBUG, "
            "success_sampling_rate=1.0, failure_sampling_rate=1.0, "
            "formatter=LogFormatter.line(), sensitive_headers=(), "
            "sensitive_query_parameters=())"
        ),
        (
            "RetryingClient(strategy=RetryStrategy.failsafe("
            "Backoff.exponential(0.2, 10.0, 2.0).with_jitter(0.2)), "
            "max_total_attempts=6, attempt_timeout=10.0, "
            "limiter=RetryBudget.per_host(deposit=0.1, capacity=10.0, brake_after=3, "
            "unserved_cost=0.1), "
            "use_retry_after=True, max_retry_after=60.0, stop_after_delay=None, "
            "buffer_response=False, "
            "retry_count_header='armeria-retry-count')"
        ),
        (
            "CircuitBreakerClient(per='host', factory=functools.partial("
            "<class 'aioretry_smithy.CircuitBreaker'>, failure_rate_threshold=1.0, "
            "consecutive_failures=5, circuit_open_window="
            "Backoff.exponential(0.1, 5.0, 1.5).with_jitter(-0.2, 0.0)), "
            "strategy=CircuitBreakerStrategy.on_server_error_status("
            "count_throttling=False), wait_for_ready=5.0)"
        ),
        (
            "aiohttp.ClientSession(base_url='https://api.example.com', "
            "response_timeout=30.0)"
        ),
    ] == [line.strip() for line in described.splitlines()]


async def test_it_retries_what_may_be_sent_again():
    """Six attempts of a GET, one of a POST."""
    async with standard_session([500, 200, *[503] * 7], limiter=None) as client:
        await outcome_of(client)
        _, log = await outcome_of(client)
        _, other = await outcome_of(client, "POST")

    assert (6, 1) == (log.total_attempts, other.total_attempts)
    assert RetryStopReason.MAX_TOTAL_ATTEMPTS == log.stop_reason


async def test_it_brakes_when_nothing_succeeds():
    """Two retries, then none before the next success; then the circuit opens."""
    async with standard_session([500] * 5, wait_for_ready=None) as client:
        logs = [(await outcome_of(client))[1] for _ in range(3)]
        with pytest.raises(FailFastError):
            await client.get(URL)

    assert [3, 1, 1] == [log.total_attempts for log in logs]
    assert RetryStopReason.LIMITER == logs[1].stop_reason


def away_until(end):
    """Answer as a gateway does whose server is away, then as that."""

    async def answer(ctx, request):
        return 503 if now() < end else 200

    return answer


async def test_it_waits_for_a_server_that_is_away():
    """For three seconds, in which one call at a time asks; POSTs wait, too."""
    transport = ScriptedTransport([away_until(3.0)] * 100)
    builder = SessionBuilder.standard(inside=[transport], logging=None)

    async def call(client, begin, method):
        await asyncio.sleep(begin)
        async with client.request(method, URL) as response:
            return response.status

    async with builder.build() as client:
        gets = [call(client, each / 10, "GET") for each in range(35)]
        posts = [call(client, 0.9 + each / 10, "POST") for each in range(20)]
        statuses = await asyncio.gather(*gets, *posts)

    assert [200] * 55 == statuses
    assert len(transport.requests) < 80


async def test_random_500s_are_paid_for_in_full():
    """They have cost the server work: a tenth of what succeeds pays for retries."""
    dice = random.Random(3)
    answers = [dice.choices([200, 500], [7, 3])[0] for _ in range(2000)]
    transport = ScriptedTransport(answers)
    builder = SessionBuilder.standard(inside=[transport], logging=None)
    async with builder.build() as client:
        for _ in range(1000):
            await outcome_of(client)

    assert len(transport.requests) <= 1000 + 10 + 100


@pytest.mark.parametrize("has_group", [True, False])
async def test_wait_is_an_argument(has_group):
    """Seconds, or None to fail at once; also for origins outside of a group."""
    url = EndpointGroup.of("http://a/", "http://b/") if has_group else None
    described = SessionBuilder.standard(url, wait_for_ready=2.0).describe()
    assert "wait_for_ready=2.0)" in described

    described = SessionBuilder.standard(url, wait_for_ready=None).describe()
    assert "wait_for_ready" not in described


def test_server_is_tried_before_the_patience_ends():
    """An open circuit loses no call then that would have worked."""
    described = SessionBuilder.standard().describe()
    windows = r"open_window=Backoff.exponential\(0.1, ([\d.]+), ([\d.]+)\)"
    longest, growth = re.search(windows, described).groups()
    patience = re.search(r"wait_for_ready=([\d.]+)", described)[1]

    assert float(patience) >= float(longest)
    # The trial right before the end of an outage of three seconds is followed by one.
    assert 3.0 * float(growth) + 0.1 < float(patience)


@pytest.mark.parametrize("value", [0, -1.0, True, "5", math.inf, math.nan])
def test_bad_waits_are_refused(value):
    """Before the first call."""
    with bad_argument("wait_for_ready", value, "finite and > 0, or None"):
        SessionBuilder.standard(wait_for_ready=value)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (None, "not given beside circuit_breaker=None, which leaves the wait out"),
        (
            CircuitBreakerClient.new_per_host_decorator(),
            (
                "in what is given as circuit_breaker: "
                "CircuitBreakerClient.new_per_host_decorator(wait_for_ready=...)"
            ),
        ),
    ],
)
def test_wait_is_refused_beside_a_circuit_breaker(part, expected):
    """It would be ignored."""
    with bad_argument("wait_for_ready", 3.0, expected):
        SessionBuilder.standard(circuit_breaker=part, wait_for_ready=3.0)


async def test_settings_can_be_replaced():
    """Each by its keyword, the others stay."""
    strategy = RetryStrategy.on_server_error_status(Backoff.without_delay())
    async with standard_session(
        [503] * 5,
        strategy=strategy,
        max_total_attempts=5,
        attempt_timeout=None,
        limiter=None,
        response_timeout=None,
    ) as client:
        _, log = await outcome_of(client, "POST")
        config = unwrap(client, RetryingClient).config

    assert 5 == log.total_attempts
    assert (strategy, None, None) == (
        config.strategy,
        config.attempt_timeout,
        config.limiter,
    )


@pytest.mark.parametrize(
    ("part", "client_class"),
    [
        ("logging", LoggingClient),
        ("retrying", RetryingClient),
        ("circuit_breaker", CircuitBreakerClient),
    ],
)
async def test_parts_can_be_left_out_or_replaced(part, client_class):
    """None leaves a part out, a decorator takes its place."""

    class Other(DecoratingClient):
        pass

    async with standard_session([], **{part: None}) as without:
        assert unwrap(without, client_class) is None
    async with standard_session([], **{part: Other}) as other:
        assert unwrap(other, client_class) is None
        assert isinstance(unwrap(other, Other), Other)


async def test_sessions_of_one_builder_share_budget_and_breaker():
    """The second session knows what the first one has learned."""
    budgets = RetryBudget.per_host()
    transport = ScriptedTransport([503] * 4)
    builder = SessionBuilder.standard(inside=[transport], limiter=budgets)
    async with builder.build() as first, builder.build() as second:
        await outcome_of(first)
        _, log = await outcome_of(second)

    assert 1 == log.total_attempts
    assert 8.0 == budgets.budget_for("localhost:80").tokens


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("attempt_timeout", None),
        ("max_total_attempts", 5),
        ("strategy", RetryStrategy.never()),
        ("limiter", None),
    ],
)
def test_settings_of_retries_are_refused_beside_a_retrying_part(name, value):
    """They would be ignored."""
    expected = f"in what is given as retrying: RetryConfig.standard({name}=...)"
    with bad_argument(name, value, expected):
        SessionBuilder.standard(
            retrying=RetryingClient.new_decorator(RetryConfig.no_retry()),
            **{name: value},
        )


def test_settings_of_retries_are_refused_where_retries_are_left_out():
    """There is nothing that they could be settings of."""
    expected = "not given beside retrying=None, which leaves the retries out"
    with bad_argument("attempt_timeout", None, expected):
        SessionBuilder.standard(retrying=None, attempt_timeout=None)


async def test_settings_may_take_the_place_of_the_retrying_part():
    """All of them; those of the standard chain with changes are one call away."""
    config = RetryConfig.standard(buffer_response=True)
    async with standard_session([], retrying=config) as client:
        assert config is unwrap(client, RetryingClient).config


async def test_mapping_may_take_the_place_of_the_retrying_part():
    """So that each host has settings of its own, in the standard chain."""
    mapping = RetryConfigMapping.per_host(lambda host: RetryConfig.standard())
    async with standard_session([503] * 6, retrying=mapping) as client:
        _, log = await outcome_of(client)

        assert mapping is unwrap(client, RetryingClient).config
    assert 6 == log.total_attempts


@pytest.mark.parametrize("seconds", [0, -1.0, math.nan, "10"])
def test_bad_response_timeout_has_its_own_name(seconds):
    """The argument of this call is named, not that of the builder's method."""
    with bad_argument("response_timeout", seconds, "finite and > 0, or None"):
        SessionBuilder.standard(response_timeout=seconds)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("logging", True, "LoggingClient.new_decorator(...)"),
        ("retrying", RetryStrategy.never(), "a RetryConfig, a RetryConfigMapping"),
        ("circuit_breaker", 5, "CircuitBreakerClient.new_decorator(...)"),
    ],
)
def test_part_that_is_no_decorator_is_told_by_its_name(name, value, expected):
    """The error has the name that the caller wrote, and the usual value."""
    expected += ", another decorator, or None to leave it out"
    with bad_argument(name, value, expected):
        SessionBuilder.standard(**{name: value})


def test_single_decorator_inside_is_told_by_its_name():
    """It belongs into a list."""
    expected = f"inside: {DecoratingClient!r} (expected: a list of decorators)"
    with raises_exactly(expected):
        SessionBuilder.standard(inside=DecoratingClient)


KNOWN = "a setting of the standard chain"


async def test_it_is_the_chain_of_the_builder():
    """In its order, with its settings, in place."""
    async with aiohttp.ClientSession() as session:
        transport = ScriptedTransport([503, 503, 200])
        same = decorate_standard(session, inside=[transport], rate=100)
        async with session.get(URL) as response:
            log = RequestLog.of(response)

        chain = []
        client = unwrap(session, LoggingClient)
        while client is not None:
            chain.append(client)
            client = getattr(client, "delegate", None)

    expected = SessionBuilder.standard(rate=100).describe().splitlines()[:-1]
    assert same is session
    assert (200, 3) == (response.status, log.total_attempts)
    assert [line.strip().partition("(")[0] for line in expected] == [
        type(each).__name__ for each in chain[: len(expected)]
    ]
    assert expected[0] == chain[0].describe()


async def test_session_keeps_its_timeout():
    """Its total is the deadline of a call."""
    timeout = aiohttp.ClientTimeout(total=12.5)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        decorate_standard(session, inside=[ScriptedTransport([200])])
        async with session.get(URL) as response:
            log = RequestLog.of(response)

        assert timeout is session.timeout
    assert 12.5 == log.response_timeout


async def test_settings_are_those_of_the_builder():
    """None leaves a part out."""
    async with aiohttp.ClientSession() as session:
        decorate_standard(
            session, max_total_attempts=2, circuit_breaker=None, logging=None
        )

        assert 2 == unwrap(session, RetryingClient).config.max_total_attempts
        for left_out in CircuitBreakerClient, LoggingClient, RateLimitingClient:
            assert unwrap(session, left_out) is None


async def test_an_attempt_is_not_longer_than_a_call():
    """As where a session is built."""
    timeout = aiohttp.ClientTimeout(total=5.0)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        with pytest.raises(ValueError, match=r"^attempt_timeout: 10\.0 "):
            decorate_standard(session, attempt_timeout=10.0)

        assert unwrap(session, RetryingClient) is None
        # That of the chain is not meant to be longer.
        decorate_standard(session)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("retries", f"{KNOWN}, perhaps 'max_total_attempts', which counts the first"),
        ("retrying_", f"{KNOWN}, perhaps 'retrying'"),
        ("headers", KNOWN),
        ("base_url", KNOWN),
        ("has_group", KNOWN),
        (
            "response_timeout",
            f"{KNOWN}; the session has one, the total of its ClientTimeout",
        ),
    ],
)
async def test_unknown_settings_are_refused(name, expected):
    """Without their values, which may be secrets; the session stays as it was."""
    async with aiohttp.ClientSession() as session:
        with pytest.raises(ValueError) as caught:
            decorate_standard(session, **{name: "hunter2"})

        assert f"argument: {name!r} (expected: {expected}" in str(caught.value)
        assert "hunter2" not in str(caught.value)
        assert unwrap(session, RetryingClient) is None


def test_type_checkers_know_the_settings_that_there_are():
    """Those of the builder, with its types, but for what makes a session."""
    of_builder = {*inspect.signature(SessionBuilder.standard).parameters}
    others = {"base_url", "response_timeout", "client_session_arguments"}

    assert {*StandardSettings.__annotations__} == of_builder - others
    assert {*StandardSettings.__annotations__} == STANDARD_SETTINGS
    standard = SessionBuilder.standard.__annotations__
    assert {name: standard[name] for name in STANDARD_SETTINGS} == {
        name: kind.__forward_arg__
        for name, kind in StandardSettings.__annotations__.items()
    }
    assert not {*StandardSettings.__annotations__} & {*SessionArguments.__annotations__}
