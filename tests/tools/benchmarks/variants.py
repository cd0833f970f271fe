"""Everything that is compared: bare aiohttp, the peers, and chains of ours."""

import importlib.util
import logging
from contextlib import asynccontextmanager
from functools import partial

import aiohttp
from calling import ATTEMPTS, BARE, Variant, getting
from function_variants import functions, with_rpc_retry
from group_variants import balanced
from peers import peers

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    ConcurrencyLimitingClient,
    DecoratingClient,
    LoggingClient,
    RateLimit,
    RateLimitingClient,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
)
from aioretry_smithy.smithy import (
    StandardRetryQuota,
    StandardRetryStrategy,
    from_backoff,
)

RETRY = "ours: retry"
README = "ours: README's chain"
FULL = "ours: retry + breaker + log off"
LOG_INSIDE = "ours: breaker + log off + retry"
OUTSIDE = "ours: full, 1 function outside"
INSIDE = "ours: full, 1 function inside"
IN_FUNCTION = "ours: full in rpc(), retry"
BREAKER = "ours: breaker"
PLACES = "ours: breaker + limit in flight"
RATE = "ours: breaker + rate"
STANDARD = "ours: standard chain"
STANDARD_AND_MORE = "ours: standard + 1 function"
TIMINGS = "timings"
"""The group of the chains with and without timings of connections."""

UNTIMED = "ours: full, untimed"
TRACED = "ours: full, an idle TraceConfig"
TIMED = "ours: full, connection timings"


@asynccontextmanager
async def bare():
    async with aiohttp.ClientSession() as session:
        yield getting(session)


@asynccontextmanager
async def chain(*decorators, is_timed=False, is_traced=False):
    builder = SessionBuilder(trace_configs=[aiohttp.TraceConfig()] * is_traced)
    if is_timed:
        builder.connection_timings()
    for decorator in decorators:
        builder.decorator(decorator)
    async with builder.build() as session:
        yield getting(session)


@asynccontextmanager
async def standard(*outside):
    # Its limits are so wide that the flaky path is not stopped by them.
    builder = SessionBuilder.standard(
        strategy=strategy(),
        limiter=RetryBudget.per_host(deposit=2.0, capacity=1000.0, brake_after=None),
        circuit_breaker=breaker(),
    )
    for decorator in outside:
        builder.decorator(decorator)
    async with builder.build() as session:
        yield getting(session)


@asynccontextmanager
async def readme():
    """Get through the README's chain of one's own, which here never waits.

    Nor does its circuit open, so that calls that fail twice can be measured.
    """
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(breaker())
        .decorator(RetryingClient.new_decorator(strategy(), attempt_timeout=3.0))
        .response_timeout(10.0)
    )
    async with builder.build() as session:
        yield getting(session)


@asynccontextmanager
async def within_a_function(decorator, *decorators):
    async with chain(*decorators) as send:

        @decorator
        async def call(url, **options):
            return await send(url, **options)

        yield call


class PlainClient(DecoratingClient):
    """A decorator that does nothing."""

    async def execute(self, ctx, request):
        return await self.delegate.execute(ctx, request)


@client_decorator
async def plain_function(delegate, ctx, request):
    return await delegate.execute(ctx, request)


def strategy():
    return RetryStrategy.failsafe(Backoff.without_delay())


def retrying():
    return RetryingClient.new_decorator(strategy(), max_total_attempts=ATTEMPTS)


def breaker():
    closed = partial(CircuitBreaker, failure_rate_threshold=1.0)
    return CircuitBreakerClient.new_per_host_decorator(closed)


def smithy():
    without_delay = StandardRetryStrategy(
        backoff_strategy=from_backoff(Backoff.without_delay()),
        max_attempts=ATTEMPTS,
        retry_quota=StandardRetryQuota(10**9),
    )
    return RetryingClient.new_decorator(without_delay)


def places():
    return ConcurrencyLimitingClient.new_per_host_decorator(lambda host: 10**6)


def rate():
    return RateLimitingClient.new_per_host_decorator(lambda host: RateLimit(1e9))


def logging_off():
    return LoggingClient.new_decorator(logging.getLogger("benchmarks.off"))


def logging_at_info():
    logger = logging.getLogger("benchmarks.info")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.handlers = [logging.NullHandler()]
    return LoggingClient.new_decorator(
        logger,
        request_log_level=logging.INFO,
        successful_response_log_level=logging.INFO,
    )


def full():
    return breaker(), retrying(), logging_off()


def ours():
    """Return the chains of ours, from the shortest."""
    return [
        _chain("empty chain", retries=False),
        _chain("1 decorator", *[PlainClient] * 1, retries=False),
        _chain("3 decorators", *[PlainClient] * 3, retries=False),
        _chain("6 decorators", *[PlainClient] * 6, retries=False),
        _chain("6 decorators, functions", *[plain_function] * 6, retries=False),
        Variant(BREAKER, partial(chain, breaker()), "ours", retries=False),
        Variant(PLACES, partial(chain, breaker(), places()), "ours", retries=False),
        Variant(RATE, partial(chain, breaker(), rate()), "ours", retries=False),
        _chain("logging off", logging_off(), retries=False),
        _chain("logging at INFO", logging_at_info(), retries=False),
        _chain("retry", retrying()),
        _chain("smithy standard", smithy()),
        Variant(FULL, partial(chain, *full()), "ours"),
        Variant(
            LOG_INSIDE,
            partial(chain, breaker(), logging_off(), retrying()),
            "ours",
            retries=False,  # otherwise it writes a line for each failure
        ),
        Variant(OUTSIDE, partial(chain, *full(), plain_function), "ours"),
        Variant(INSIDE, partial(chain, plain_function, *full()), "ours"),
        Variant(
            IN_FUNCTION, partial(within_a_function, with_rpc_retry, *full()), "ours"
        ),
        Variant(README, readme, "ours"),
        Variant(STANDARD, standard, "ours"),
        Variant(STANDARD_AND_MORE, partial(standard, plain_function), "ours"),
        Variant(UNTIMED, partial(chain, *full()), "ours", group=TIMINGS),
        Variant(TRACED, partial(chain, *full(), is_traced=True), "ours", group=TIMINGS),
        Variant(TIMED, partial(chain, *full(), is_timed=True), "ours", group=TIMINGS),
    ]


def _chain(name, *decorators, retries=True):
    return Variant(f"ours: {name}", partial(chain, *decorators), "ours", retries)


def installed():
    """Return the variants that can be measured here, and those that lack a package."""
    here, missing = [], []
    nothing = Variant(BARE, bare, "bare", retries=False)
    for variant in [nothing, *peers(), *ours(), *functions(), *balanced(*full())]:
        there = all(map(importlib.util.find_spec, variant.needs))
        (here if there else missing).append(variant)
    return here, missing
