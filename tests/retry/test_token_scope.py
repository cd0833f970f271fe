"""Which calls share the quota and the rate of a Smithy strategy."""

from __future__ import annotations

import pytest
from chains import URL, bad_argument, response_of, session

from aioretry_smithy import (
    HttpRequest,
    RequestLog,
    RetryConfig,
    RetryConfigMapping,
    RetryingClient,
    RetryStopReason,
    RetryStrategy,
    RetryStrategyWithContent,
    SessionBuilder,
    request_options,
    smithy,
)
from aioretry_smithy.testing import ScriptedTransport


def tenant(ctx, request: HttpRequest) -> str | None:
    return request.headers.get("X-Tenant")


def scoped(token_scope, strategy=None):
    """Retry as a Smithy strategy says, in a scope."""
    strategy = strategy or smithy.StandardRetryStrategy()
    return RetryingClient.new_decorator(strategy, token_scope=token_scope)


async def call(decorator, *, answers=(503, 200), **options) -> None:
    """Make one call through a decorator."""
    await response_of(session(answers, decorator), **options)


def spent(strategy: smithy.StandardRetryStrategy, *scopes: str | None) -> list[int]:
    """Return what the retries of each scope have cost."""
    return [500 - strategy.quota_for(each).available_capacity for each in scopes]


@pytest.mark.parametrize(
    ("token_scope", "scope"),
    [
        (None, "localhost:80"),
        ("orders", "orders"),
        (tenant, "a"),
        (lambda ctx, request: None, None),
        (lambda ctx, request: ctx.request.url.path, "/orders"),
    ],
)
@pytest.mark.parametrize("kind", ["StandardRetryStrategy", "AdaptiveRetryStrategy"])
async def test_calls_of_a_scope_share_a_quota(kind, token_scope, scope):
    """A name is for all calls, a function names each, and None is the server's."""
    strategy = getattr(smithy, kind)()
    decorator = scoped(token_scope, strategy)
    await call(decorator, answers=[503] * 3, headers={"X-Tenant": "a"})
    others = {"localhost:80", "orders", "a", None, "/orders", "b"} - {scope}

    assert [28] == spent(strategy, scope)
    assert [0] * 5 == spent(strategy, *others)


async def test_scope_has_its_own_rate():
    """Throttling in one scope does not slow down the others."""
    strategy = smithy.AdaptiveRetryStrategy()
    decorator = scoped(tenant, strategy)
    await call(decorator, answers=[429, 200], headers={"X-Tenant": "a"})

    assert strategy.limiter_for("a").enabled
    assert not strategy.limiter_for("localhost:80").enabled


async def test_scope_reaches_a_strategy_of_ones_own():
    """It is what the strategy is asked with, once for a call."""

    class Own(smithy.SimpleRetryStrategy):
        async def acquire_initial_retry_token(self, *, token_scope=None):
            asked.append(token_scope)
            return await super().acquire_initial_retry_token(token_scope=token_scope)

    asked = []
    await call(scoped("orders", Own()), answers=[503, 503, 200])

    assert ["orders"] == asked


async def test_function_is_asked_once_per_call():
    """Not once per attempt: what it names has to stay the same for the tokens."""

    def count(ctx, request):
        asked.append((ctx.attempt, str(request.url)))
        return "orders"

    asked = []
    await call(scoped(count), answers=[503, 503, 200])

    assert [(None, URL)] == asked


@pytest.mark.parametrize("scope", [5, b"orders", ("a", "b"), False])
async def test_function_that_returns_no_scope_fails_the_call(scope):
    """Nothing is sent, and the error names the setting."""
    transport = ScriptedTransport([200])
    decorator = scoped(lambda ctx, request: scope)
    with bad_argument("token_scope", scope, "returns a str, or None") as caught:
        await response_of(session(transport, decorator))

    assert RetryStopReason.ERROR == RequestLog.of(caught.value).stop_reason
    assert [] == transport.requests


@pytest.mark.parametrize("error", [LookupError("tenant"), smithy.RetryError("no")])
async def test_function_that_fails_fails_the_call(error):
    """Its exception is the caller's, also one that a strategy would refuse with."""

    def broken(ctx, request):
        raise error

    with pytest.raises(type(error)) as caught:
        await call(scoped(broken))

    assert error is caught.value


async def later(ctx, request: HttpRequest) -> str:
    return "orders"


@pytest.mark.parametrize("token_scope", [5, b"orders", False, ["orders"], later])
def test_what_names_no_scope_is_told_at_once(token_scope):
    """When the settings are made, not when the first call is."""
    with bad_argument(
        "token_scope",
        token_scope,
        "a str, a plain function of ctx and request, or None",
    ):
        RetryConfig(smithy.StandardRetryStrategy(), token_scope=token_scope)


class Looking(RetryStrategyWithContent):
    """Decides by the body."""

    def should_retry(self, ctx, cause, content):
        return None


@pytest.mark.parametrize(
    "make",
    [
        RetryConfig,
        RetryingClient.new_decorator,
        lambda strategy, **settings: RetryConfig.standard(
            strategy=strategy, **settings
        ),
    ],
)
@pytest.mark.parametrize("strategy", [RetryStrategy.failsafe(), Looking()])
@pytest.mark.parametrize("token_scope", ["orders", tenant])
def test_scope_for_a_strategy_without_tokens_is_refused(make, strategy, token_scope):
    """An option that would be ignored is an error, wherever the settings are made."""
    with bad_argument("token_scope", token_scope, "only for a Smithy strategy"):
        make(strategy, token_scope=token_scope)


async def test_scope_goes_wherever_settings_go():
    """A decorator, settings by key, those of a block, and the standard chain."""
    strategy = smithy.StandardRetryStrategy()

    def config(scope):
        return RetryConfig.standard(strategy=strategy, limiter=None, token_scope=scope)

    answers = [503] * 3
    await call(RetryingClient.new_decorator(config("whole")), answers=answers)
    mapping = RetryConfigMapping.per_host(lambda host: config(f"mapped {host}"))
    await call(RetryingClient.new_mapped_decorator(mapping), answers=answers)
    with request_options(retry=config("block")):
        await call(RetryingClient.new_decorator(strategy), answers=answers)
    chain = SessionBuilder.standard(
        retrying=config("chain"), inside=[ScriptedTransport(answers)]
    )
    async with chain.build() as client:
        await client.get(URL)

    scopes = ["whole", "mapped localhost:80", "block", "chain", "localhost:80"]
    assert [28, 28, 28, 28, 0] == spent(strategy, *scopes)


@pytest.mark.parametrize(
    ("token_scope", "shown"),
    [
        (None, "raise_retry_error=False)"),
        ("orders", "raise_retry_error=False, token_scope='orders')"),
        (tenant, "raise_retry_error=False, token_scope=tenant)"),
    ],
)
def test_description_shows_a_scope_that_is_given(token_scope, shown):
    """A function by its name."""
    assert scoped(token_scope)(None).describe().endswith(shown)
