"""The limits of the standard chain: requests at once, rates, time; not enforced."""

import asyncio
import math
from functools import cache

import pytest
from aiohttp import ClientSession, ClientTimeout
from chains import URL, after, bad_argument, now, raises_exactly, standard_session

from aioretry_smithy import (
    AttemptTimeoutError,
    CircuitBreaker,
    CircuitBreakerClient,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    EndpointGroup,
    FailFastError,
    RateLimit,
    RateLimitingClient,
    RequestLog,
    ResponseTimeoutError,
    RetryConfig,
    RetryConfigMapping,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    decorate,
    unwrap,
)
from aioretry_smithy.testing import ScriptedTransport


def described(**settings):
    """Return the lines that describe a standard chain, from the outside in."""
    lines = SessionBuilder.standard(**settings).describe().splitlines()
    return [line.strip() for line in lines]


def limited(**settings):
    """Return how the limit of the requests in flight is described."""
    (line,) = [
        line
        for line in described(concurrency="aimd", **settings)
        if line.startswith("ConcurrencyLimitingClient")
    ]
    return line


async def ends_of(urls, **settings):
    """Return when calls end that begin at once, and the limits by their keys."""
    transport = ScriptedTransport([after(1.0, 200)] * len(urls))
    builder = SessionBuilder.standard(inside=[transport], **settings)

    async with builder.build() as client:

        async def end_of(url):
            async with client.get(url):
                return now()

        ends = await asyncio.gather(*map(end_of, urls))
        found = (
            unwrap(client, kind)
            for kind in (ConcurrencyLimitingClient, RateLimitingClient)
        )
        return ends, [sorted(each.limits) for each in found if each is not None]


URLS = "http://a/", "http://a/", "http://b/"


@pytest.mark.parametrize(
    ("concurrency", "ends", "keys"),
    [
        (1, [1, 2, 1], ["a:80", "b:80"]),
        (lambda host: 1, [1, 2, 1], ["a:80", "b:80"]),
        (ConcurrencyLimit.fixed(1, name="all"), [1, 2, 3], ["all"]),
        ("aimd", [1, 1, 1], ["a:80", "b:80"]),
    ],
    ids=["number", "function", "limit", "word"],
)
async def test_requests_in_flight_are_limited_per_host_or_in_all(
    concurrency, ends, keys
):
    """A number counts for each host, a limit that is given for all of them."""
    assert (ends, [keys]) == await ends_of(URLS, concurrency=concurrency)


@pytest.mark.parametrize(
    ("rate", "ends", "keys"),
    [
        (0.5, [1, 3, 1], ["a:80", "b:80"]),
        (lambda host: RateLimit(0.5), [1, 3, 1], ["a:80", "b:80"]),
        (lambda host: 0.5, [1, 3, 1], ["a:80", "b:80"]),
        (RateLimit(0.5), [1, 3, 5], ["all"]),
        ([RateLimit(0.5)], [1, 3, 5], ["all"]),
    ],
    ids=["number", "function", "function of numbers", "rate", "list"],
)
async def test_rate_is_limited_in_all_or_per_host(rate, ends, keys):
    """A number counts for each host, a limit that is given for all of them."""
    assert (ends, [keys]) == await ends_of(URLS, rate=rate)


@pytest.mark.parametrize(
    ("concurrency", "expected"),
    [
        (1, [[1], [1]]),
        (ConcurrencyLimit.fixed(1), [[1], [2]]),
        (cache(lambda host: ConcurrencyLimit.fixed(1)), [[1], [2]]),
    ],
    ids=["number", "limit", "function that keeps it"],
)
async def test_builders_share_a_limit_that_both_are_given(concurrency, expected):
    """A number is a limit of its own for each of them."""
    both = [ends_of(URLS[:1], concurrency=concurrency) for _ in range(2)]
    ends = [ends for ends, _ in await asyncio.gather(*both)]

    assert expected == ends


def test_limits_stand_inside_the_circuit_breaker():
    """What waits at an open circuit holds no place and takes no turn."""
    lines = described(concurrency=20, rate=RateLimit(50))

    assert [
        "LoggingClient",
        "RetryingClient",
        "CircuitBreakerClient",
        "RateLimitingClient",
        "ConcurrencyLimitingClient",
        "aiohttp.ClientSession",
    ] == [line.partition("(")[0] for line in lines]
    expected = "per='host', factory=ConcurrencyLimit.fixed(limit=20)"
    assert "RateLimitingClient(RateLimit(50, 1.0), timeout=None)" == lines[3]
    assert lines[4].startswith(f"ConcurrencyLimitingClient({expected}, max_pending=")


@pytest.mark.parametrize(
    ("settings", "slow_after", "timeout"),
    [
        ({}, 5.0, 2.5),
        ({"attempt_timeout": 1.0}, 0.5, 0.25),
        ({"retrying": RetryConfig.standard(attempt_timeout=1.0)}, 0.5, 0.25),
        ({"attempt_timeout": None}, 5.0, 2.5),
        ({"retrying": None}, 5.0, 2.5),
        ({"response_timeout": 2.0}, 1.0, 0.5),
        ({"response_timeout": 2.0, "attempt_timeout": 1.0}, 0.5, 0.25),
        ({"timeout": ClientTimeout(total=0)}, 5.0, 2.5),
        ({"retrying": RetryConfigMapping.per_host(RetryConfig)}, 5.0, 2.5),
    ],
)
def test_word_is_read_by_the_attempt_timeout(settings, slow_after, timeout):
    """Half of it is slow, and a quarter is spent in the queue at most."""
    shown = f"ConcurrencyLimit.aimd(initial=4, slow_after={slow_after})"
    queue = f"max_pending=None, timeout={timeout}"
    expected = f"ConcurrencyLimitingClient(per='host', factory={shown}, {queue})"

    assert expected == limited(**settings)


async def test_limit_by_the_word_has_the_name_of_its_host():
    """So that its metrics and its refusals say which it is."""
    transport = ScriptedTransport([200])
    builder = SessionBuilder.standard(inside=[transport], concurrency="aimd")
    async with builder.build() as client:
        await client.get("http://a/")
        (limit,) = unwrap(client, ConcurrencyLimitingClient).limits.values()

    assert ("a:80", 4) == (limit.name, limit.limit)


PLACES = "an int >= 1, a ConcurrencyLimit, a function of the host, 'aimd' or None"
RATES = "a number > 0, a RateLimit or a list of them, a function of the host, or None"


async def later(host):
    raise AssertionError("not asked")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("concurrency", later, PLACES),
        ("rate", later, RATES),
        *(("concurrency", value, PLACES) for value in (0, True, 1.5, "gradient")),
        *(("rate", value, RATES) for value in (0, -1.0, True, math.inf, "50/second")),
    ],
)
def test_what_is_no_limit_is_refused(name, value, expected):
    """At once, by the name that the caller wrote."""
    with bad_argument(name, value, expected):
        SessionBuilder.standard(**{name: value})


async def test_places_are_free_while_calls_wait_at_a_circuit():
    """Another host's calls do not wait for those of a server that is away."""
    away, well = "http://away.example", "http://well.example"

    async def answer(ctx, request):
        return 503 if request.url.host == "away.example" else 200

    builder = SessionBuilder.standard(
        inside=[ScriptedTransport([answer] * 40)],
        concurrency=ConcurrencyLimit.fixed(limit=2, name="all"),
        logging=None,
    )
    async with builder.build() as client:
        calls = [asyncio.create_task(client.get(away)) for _ in range(6)]
        await asyncio.sleep(2.0)
        started = now()
        async with client.get(well) as response:
            assert (200, started) == (response.status, now())
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)


PLAIN = {"retrying": None, "logging": None}


def builder(answers=(), base_url=None, **settings):
    inside = [ScriptedTransport(answers)]
    return SessionBuilder.standard(base_url, inside=inside, **PLAIN, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"concurrency": 1, "rate": RateLimit(1)},
        {"concurrency": "aimd", "rate": lambda key: RateLimit(1)},
        {"concurrency": ConcurrencyLimit.fixed(1), "rate": RateLimit(1)},
        {"concurrency": lambda key: 1, "rate": RateLimit(1)},
    ],
    ids=["numbers", "aimd", "objects", "functions"],
)
@pytest.mark.parametrize("base_url", [None, EndpointGroup.of("http://a", "http://b")])
def test_all_three_are_told(settings, base_url):
    """However they are made."""
    acting = builder(base_url=base_url, **settings).describe()
    dry = builder(base_url=base_url, enforce=False, **settings).describe()

    assert (0, 3) == tuple(text.count("enforce=False") for text in (acting, dry))


async def test_requests_wait_for_no_limit():
    """They go out at once."""
    limits = {"concurrency": 1, "rate": RateLimit(0.1)}
    async with builder(
        [after(1.0, 200)] * 3, enforce=False, **limits
    ).build() as client:
        await asyncio.gather(*(client.get(URL) for _ in range(3)))

    assert 1.0 == now()


async def test_no_circuit_refuses_a_request():
    """Though it is open."""
    async with builder([500] * 20, enforce=False).build() as client:
        logs = [RequestLog.of(await client.get(URL)) for _ in range(20)]

    assert all(log.sent for log in logs)


async def test_a_circuit_breaker_that_was_given_acts_as_it_says():
    """The argument is for what is made here."""
    breaker = CircuitBreaker(minimum_request_threshold=1)
    given = CircuitBreakerClient.new_decorator(breaker)
    async with builder([500], enforce=False, circuit_breaker=given).build() as client:
        await client.get(URL)
        with pytest.raises(FailFastError):
            await client.get(URL)


@pytest.mark.parametrize("enforce", [None, 1, "no"])
def test_it_is_true_or_false(enforce):
    """Nothing else."""
    with pytest.raises(ValueError, match="^enforce: "):
        builder(enforce=enforce)


@pytest.mark.parametrize(
    "builder",
    [
        lambda: SessionBuilder.standard(response_timeout=5.0, attempt_timeout=7.0),
        lambda: SessionBuilder.standard(attempt_timeout=7.0).response_timeout(5.0),
        lambda: SessionBuilder.standard(
            timeout=ClientTimeout(total=5.0), attempt_timeout=7.0
        ),
        lambda: SessionBuilder.standard(
            response_timeout=5.0, retrying=RetryConfig.standard(attempt_timeout=7.0)
        ),
    ],
)
async def test_attempt_that_is_to_take_longer_than_the_call_is_refused(builder):
    """One of the two cannot be meant."""
    expected = "attempt_timeout: 7.0 (expected: <= response_timeout, 5.0)"
    with raises_exactly(expected):
        builder().build()


async def silence(ctx, request):
    """Answer nothing for a minute."""
    await asyncio.sleep(60.0)


@pytest.mark.parametrize(
    "builder",
    [
        lambda inside: SessionBuilder.standard(inside=inside, response_timeout=2.0),
        lambda inside: SessionBuilder.standard(inside=inside).response_timeout(2.0),
        lambda inside: SessionBuilder.standard(
            inside=inside, timeout=ClientTimeout(total=2.0)
        ),
        lambda inside: SessionBuilder.standard(
            inside=inside, response_timeout=2.0, retrying=RetryConfig.standard()
        ),
        lambda inside: (
            SessionBuilder()
            .decorator(inside[0])
            .decorator(RetryingClient.new_decorator(RetryConfig.standard()))
            .response_timeout(2.0)
        ),
    ],
)
async def test_attempt_ends_with_a_short_call_where_nobody_said_how_long_it_takes(
    builder,
):
    """Its ten seconds contradict no limit."""
    begun = now()
    async with builder([ScriptedTransport([silence])]).build() as client:
        with pytest.raises(ResponseTimeoutError) as caught:
            await client.get(URL)

    assert not isinstance(caught.value, AttemptTimeoutError)
    assert (2.0, 1) == (now() - begun, RequestLog.of(caught.value).total_attempts)


async def test_attempt_may_take_as_long_as_the_call():
    """That is no contradiction; neither is no limit at all."""
    for limits in (
        {"response_timeout": 10.0},
        {"response_timeout": None},
        {"attempt_timeout": None},
        {"retrying": None, "response_timeout": 1.0},
    ):
        async with standard_session([], **limits) as client:
            assert not client.closed


@pytest.mark.parametrize(
    ("options", "total"),
    [
        ({"timeout": ClientTimeout(total=12)}, 12.0),
        ({"timeout": ClientTimeout(sock_read=3)}, 30.0),
        ({"timeout": ClientTimeout(total=12), "response_timeout": 20.0}, 20.0),
        ({"timeout": ClientTimeout(total=12), "response_timeout": None}, None),
        ({"timeout": ClientTimeout(total=0)}, None),
        ({"timeout": ClientTimeout(total=-1)}, None),
        ({"timeout": ClientTimeout(total=0), "response_timeout": 20.0}, 20.0),
    ],
)
async def test_total_of_the_timeout_counts_unless_said_otherwise(options, total):
    """A limit that was given is not lifted silently."""
    async with standard_session([], **options) as client:
        assert total == client.timeout.total


def test_total_that_is_no_number_is_refused():
    """It must not be taken for no limit."""
    with pytest.raises(ValueError, match="seconds: '5'"):
        SessionBuilder.standard(timeout=ClientTimeout(total="5"))


async def test_no_limit_for_the_call_allows_any_for_its_attempts():
    """0 is no limit to aiohttp."""
    builder = SessionBuilder(timeout=ClientTimeout(total=0)).decorator(
        RetryingClient.new_decorator(RetryStrategy.never(), attempt_timeout=400.0)
    )

    assert "response_timeout=None" in builder.describe()
    async with builder.build() as client:
        assert not client.closed


async def test_contradiction_is_refused_by_every_session():
    """Aiohttp's default of five minutes counts too, and an existing session's."""
    retrying = RetryingClient.new_decorator(
        RetryStrategy.never(), attempt_timeout=400.0
    )
    with pytest.raises(ValueError, match="<= response_timeout, 300"):
        SessionBuilder().decorator(retrying).build()
    async with ClientSession(timeout=ClientTimeout(total=5)) as client:
        with pytest.raises(ValueError, match="<= response_timeout, 5"):
            decorate(client, retrying)
