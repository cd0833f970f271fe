"""Chains of all kinds, each of whose parts tells a witness what it was told."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import aiohttp
from story_calls import NOW
from story_decorators import (
    Answering,
    AsyncStrategy,
    BreakerStrategy,
    ContentStrategy,
    Extending,
    FailingLimiter,
    FailingListener,
    FailingStrategy,
    NamedRetryingClient,
    OwnBreakerClient,
    OwnLoggingClient,
    OwnRetryingClient,
    Protocol,
    Refreshing,
    Signing,
    Strategy,
    watching,
)
from story_text import (
    AsyncLimiterWitness,
    BreakerWitness,
    BudgetWitness,
    LimiterWitness,
    told_context,
)

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerRule,
    CircuitState,
    ConcurrencyLimitingClient,
    ContentPreviewingClient,
    LoggingClient,
    RateLimit,
    RateLimitingClient,
    RetryBudget,
    RetryConfig,
    RetryConfigMapping,
    RetryingClient,
    RetryLimiter,
    RetryRule,
    RetryRuleWithContent,
    RetryStrategy,
    SessionBuilder,
    decorate,
    new_response,
    unwrap,
)
from aioretry_smithy.smithy import (
    StandardRetryQuota,
    StandardRetryStrategy,
    from_backoff,
)

OFF = logging.CRITICAL + 1
FAILSAFE = RetryStrategy.failsafe(NOW)


@dataclass(frozen=True)
class Chain:
    """How a session with a chain is made, and from which level on it is logged."""

    open: Callable
    level: int = OFF
    delays: bool = False
    """Whether it waits at random before a retry."""


def chain(*parts, level=OFF):
    """Describe a chain by what makes its decorators, from the inside out."""

    def new_session(witness, **settings):
        builder = SessionBuilder(**settings)
        for part in parts:
            builder.decorator(part(witness))
        return builder.build()

    return Chain(new_session, level)


def plain(decorator):
    """Stand for a decorator that has nothing to tell a witness."""
    return lambda witness: decorator


def retrying(strategy=FAILSAFE, limiter=None, **settings):
    """Retry twice, with a limiter that is made for the witness."""

    def part(witness):
        return RetryingClient.new_decorator(
            strategy(witness) if isinstance(strategy, type) else strategy,
            max_total_attempts=3,
            limiter=None if limiter is None else limiter(witness),
            **settings,
        )

    return part


def new_breaker(witness, name=None, **settings):
    """Make a circuit breaker whose state the witness looks at in the end."""
    witnesses = [BreakerWitness(witness)]
    breaker = CircuitBreaker(name, listeners=witnesses, **settings)
    witness.states.append(
        lambda: (breaker.name, str(breaker.state), repr(breaker.event_count))
    )
    return breaker


def breaking(
    way="new_per_host_decorator", strategy=None, client=CircuitBreakerClient, **settings
):
    """Break circuits, one for each key."""

    def part(witness):
        factory = partial(new_breaker, witness, **settings)
        return getattr(client, way)(factory, strategy)

    return part


def one_breaker(state=None, **settings):
    """Break one circuit, which may be in a state from the beginning."""

    def part(witness):
        breaker = new_breaker(witness, "shop")
        if state is not None:
            breaker.enter_state(state)
        return CircuitBreakerClient.new_decorator(breaker, **settings)

    return part


def budget(witness, **settings):
    """Make a retry budget whose tokens the witness looks at in the end."""
    made = RetryBudget(
        name="shop", listeners=[BudgetWitness(witness)], capacity=5.0, **settings
    )
    made.acquire(None, None)
    witness.states.append(lambda: (made.tokens, made.failures_in_a_row))
    return made


def with_failing_listener(witness):
    """Break circuits with a listener that raises."""
    return CircuitBreakerClient.new_per_host_decorator(
        lambda name: CircuitBreaker(name, listeners=[FailingListener(witness)])
    )


def judged_breaking(witness):
    """Break circuits by a strategy of the user's."""
    factory = partial(new_breaker, witness)
    return CircuitBreakerClient.new_per_host_decorator(
        factory, BreakerStrategy(witness)
    )


def smithy_retrying(witness):
    """Retry by tokens, and look at the quota in the end."""
    quota = StandardRetryQuota(500)
    strategy = StandardRetryStrategy(
        backoff_strategy=from_backoff(NOW), max_attempts=3, retry_quota=quota
    )
    witness.states.append(lambda: quota.available_capacity)
    return RetryingClient.new_decorator(strategy)


def logging_with(**settings):
    """Log each call."""
    return plain(LoggingClient.new_decorator(**settings))


def own_retrying(client):
    """Retry by a subclass."""
    return plain(client.new_decorator(FAILSAFE, max_total_attempts=3))


def mapped(witness):
    """Retry by the method."""

    def config(key):
        witness.note("config for", key)
        return RetryConfig(Strategy(witness), 3 if key == "GET" else 2)

    return RetryingClient.new_mapped_decorator(RetryConfigMapping.per_method(config))


def standard(*outside, level=logging.WARNING):
    """Describe the standard chain, without delays."""

    def new_session(witness, **settings):
        factory = partial(new_breaker, witness, failure_rate_threshold=1.0)
        builder = SessionBuilder.standard(
            strategy=FAILSAFE,
            max_total_attempts=3,
            limiter=budget(witness, brake_after=None),
            circuit_breaker=CircuitBreakerClient.new_per_host_decorator(factory),
            **settings,
        )
        for part in outside:
            builder.decorator(part(witness))
        return builder.build()

    return Chain(new_session, level)


def untouched(witness, **settings):
    """Make a session with the standard chain as it is."""
    return SessionBuilder.standard(**settings).build()


def decorated(witness, **settings):
    """Put the full chain on a session that is there."""
    parts = (breaking(), retrying(), logging_with())
    return decorate(
        aiohttp.ClientSession(**settings), *(part(witness) for part in parts)
    )


def patched(client, witness, **settings):
    """Put another function over one client of a session that is built."""
    session = FULL.open(witness, **settings)
    link = unwrap(session, client)
    execute = link.execute

    async def patched_execute(ctx, request):
        witness.note("patched", told_context(ctx))
        return await execute(ctx, request)

    link.execute = patched_execute
    return session


FULL = chain(breaking(), retrying(), logging_with())
ON = logging.DEBUG
CHAINS = {
    "empty": chain(),
    "retry": chain(retrying()),
    "breaker": chain(breaking()),
    "log off": chain(logging_with()),
    "log at DEBUG": chain(logging_with(), level=ON),
    "full": FULL,
    "limits": chain(
        plain(ConcurrencyLimitingClient.new_per_host_decorator(lambda key: 100)),
        plain(RateLimitingClient.new_decorator(RateLimit(1e6))),
        breaking(),
        retrying(),
    ),
    "full, decorated": Chain(decorated),
    "full, log at DEBUG": chain(breaking(), retrying(), logging_with(), level=ON),
    "full, log at WARNING": chain(
        breaking(), retrying(), logging_with(), level=logging.WARNING
    ),
    "full, successes at INFO": chain(
        breaking(),
        retrying(),
        logging_with(successful_response_log_level=logging.INFO),
        level=logging.INFO,
    ),
    "full, sampled by a function": chain(
        retrying(), logging_with(success_sampling_rate=lambda log: True), level=ON
    ),
    "log inside": chain(logging_with(), retrying(), level=ON),
    "log inside, off": chain(logging_with(), breaking(), retrying()),
    "log inside and outside": chain(
        logging_with(), retrying(), logging_with(), level=ON
    ),
    "breaker outside": chain(retrying(), breaking()),
    "two breakers": chain(breaking(), one_breaker(), retrying()),
    "breaker per method": chain(breaking("new_per_method_decorator"), retrying()),
    "breaker per path": chain(breaking("new_per_path_decorator"), retrying()),
    "breaker per host and method": chain(
        breaking("new_per_host_and_method_decorator"), retrying()
    ),
    "one breaker": chain(one_breaker(), retrying(), logging_with()),
    "breaker forced open": chain(one_breaker(CircuitState.FORCED_OPEN), retrying()),
    "breaker open": chain(one_breaker(CircuitState.OPEN), retrying()),
    "breaker half open": chain(one_breaker(CircuitState.HALF_OPEN), retrying()),
    "breaker that opens soon": chain(
        breaking(minimum_request_threshold=2, failure_rate_threshold=0.1), retrying()
    ),
    "breaker with a fallback": chain(
        one_breaker(
            CircuitState.FORCED_OPEN,
            fallback=lambda ctx, request: new_response(request, 203),
        ),
        retrying(),
    ),
    "breaker with a rule": chain(
        breaking(strategy=CircuitBreakerRule.failure(statuses={404})), retrying()
    ),
    "breaker with a slow rule": chain(
        breaking(strategy=CircuitBreakerRule.failure(slower_than=5.0)), retrying()
    ),
    "breaker with a strategy": chain(judged_breaking, retrying(), logging_with()),
    "breaker with a failing listener": chain(
        with_failing_listener, retrying(), logging_with(), level=logging.WARNING
    ),
    "strategy": chain(breaking(), retrying(Strategy), logging_with()),
    "async strategy": chain(breaking(), retrying(AsyncStrategy)),
    "failing strategy": chain(breaking(), retrying(FailingStrategy)),
    "no strategy": chain(breaking(), retrying(RetryStrategy.never())),
    "strategy for unprocessed": chain(retrying(RetryStrategy.on_unprocessed(NOW))),
    "strategy for 5xx": chain(retrying(RetryStrategy.on_server_error_status(NOW))),
    "strategy by status": chain(
        retrying(
            RetryStrategy.on_status(
                lambda status, cause: NOW if status == 200 else None
            )
        )
    ),
    "rule": chain(retrying(RetryRule(statuses={503}, backoff=NOW))),
    "rule for slow answers": chain(
        retrying(RetryRule(slower_than=5.0, backoff=NOW) | FAILSAFE)
    ),
    "content strategy": chain(breaking(), retrying(ContentStrategy), logging_with()),
    "content rule": chain(
        retrying(
            RetryRuleWithContent(
                on_content=lambda content: content == b"try again", backoff=NOW
            )
            | FAILSAFE
        )
    ),
    "buffered": chain(breaking(), retrying(buffer_response=True)),
    "no retry": chain(plain(RetryingClient.new_decorator(RetryConfig.no_retry()))),
    "without count": chain(retrying(retry_count_header=None)),
    "count in a header of its own": chain(retrying(retry_count_header="X-Count")),
    "attempts of 0.4 s": chain(
        breaking(), retrying(attempt_timeout=0.4), logging_with()
    ),
    "attempts of 5 s": chain(breaking(), retrying(attempt_timeout=5.0)),
    "Smithy": chain(breaking(), smithy_retrying, logging_with()),
    "mapping": chain(breaking(), mapped, logging_with()),
    "limiter": chain(breaking(), retrying(limiter=LimiterWitness), logging_with()),
    "async limiter": chain(retrying(limiter=AsyncLimiterWitness)),
    "failing limiter": chain(
        retrying(limiter=FailingLimiter), logging_with(), level=logging.WARNING
    ),
    "budget": chain(breaking(), retrying(limiter=budget)),
    "limiter of tokens": chain(
        retrying(
            limiter=lambda witness: RetryLimiter.token_based(10.0, 5.0, token_ratio=0.1)
        )
    ),
    "limiter of concurrency": chain(
        retrying(limiter=lambda witness: RetryLimiter.concurrency(1))
    ),
    "standard": standard(),
    "standard, log at DEBUG": standard(level=ON),
    "standard, untouched": Chain(untouched, logging.WARNING, delays=True),
    "standard, function outside": standard(watching("outside")),
    "standard, class outside": standard(plain(Signing)),
    "standard, protocol outside": standard(plain(Protocol)),
    "function inside": chain(watching("inside"), breaking(), retrying()),
    "function outside": chain(breaking(), retrying(), watching("outside")),
    "functions everywhere": chain(
        watching("1"), breaking(), watching("2"), retrying(), watching("3")
    ),
    "protocol inside": chain(plain(Protocol), breaking(), retrying(Strategy)),
    "request changed inside": chain(plain(Signing), breaking(), retrying(Strategy)),
    "request changed outside": chain(breaking(), retrying(Strategy), plain(Signing)),
    "answered inside": chain(plain(Answering), breaking(), retrying(Strategy)),
    "answered outside": chain(breaking(), retrying(Strategy), plain(Answering)),
    "asked twice inside": chain(plain(Refreshing), breaking(), retrying(Strategy)),
    "asked twice outside": chain(breaking(), retrying(Strategy), plain(Refreshing)),
    "deadline moved outside": chain(breaking(), retrying(Strategy), plain(Extending)),
    "deadline moved inside": chain(plain(Extending), breaking(), retrying(Strategy)),
    "own retrying client": chain(breaking(), own_retrying(OwnRetryingClient)),
    "retrying client by another name": chain(
        breaking(), own_retrying(NamedRetryingClient)
    ),
    "own breaker client": chain(breaking(client=OwnBreakerClient), retrying()),
    "own logging client": chain(
        breaking(), retrying(), plain(OwnLoggingClient.new_decorator()), level=ON
    ),
    "patched retrying client": Chain(partial(patched, RetryingClient)),
    "patched breaker client": Chain(partial(patched, CircuitBreakerClient)),
    "patched logging client": Chain(partial(patched, LoggingClient)),
    "content preview": chain(
        plain(ContentPreviewingClient.new_decorator(20)), breaking(), retrying()
    ),
    "secrets of its own": chain(
        breaking(),
        retrying(),
        logging_with(
            sensitive_headers=["X-Answer"], sensitive_query_parameters=["where"]
        ),
    ),
}
"""By name."""


def traced(*inside):
    """Describe a chain with tracing inside and outside, or inside only."""

    def new_session(witness, **settings):
        heard = Heard()
        witness.states.append(
            lambda: [
                (span.name, str(span.kind), attributes_of(span))
                for span in heard.spans()
            ]
        )
        tracing = heard.decorator()
        parts = (plain(tracing), *inside, plain(tracing))
        return chain(*parts).open(witness, **settings)

    return Chain(new_session)


def counted(witness, **settings):
    """Make a session with metrics for Prometheus inside and outside."""
    registry = CollectorRegistry()
    witness.states.append(
        lambda: sorted(
            (sample.name, sorted(sample.labels.items()), sample.value)
            for metric in registry.collect()
            for sample in metric.samples
            if sample.name.endswith("_total") or sample.name.endswith("_count")
        )
    )
    metrics = plain(MetricsClient.new_decorator(registry))
    parts = (metrics, breaking(), retrying(), metrics)
    return chain(*parts).open(witness, **settings)


with contextlib.suppress(ImportError):
    import opentelemetry.sdk  # noqa: F401
    from heard import Heard, attributes_of

    CHAINS["traced"] = traced(breaking(), retrying())
with contextlib.suppress(ImportError):
    from prometheus_client import CollectorRegistry

    from aioretry_smithy.prometheus import MetricsClient

    CHAINS["counted"] = Chain(counted)
