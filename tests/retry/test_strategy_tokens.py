"""Tokens from strategies of the user's, and errors for wrong ones."""

import asyncio

import pytest
from chains import (
    URL,
    bad_argument,
    now,
    raises_exactly,
    response_of,
    retrying_session,
    session,
    status_and_log,
)
from token_strategies import SCOPE, THROTTLED, Async, Plain, Token, standard

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryConfig,
    RetryingClient,
    RetryStopReason,
    RetryStrategy,
    RetryStrategyWithContent,
    capture_logs,
    smithy,
)
from aioretry_smithy._retry.smithy_strategies import to_backoff
from aioretry_smithy.smithy import from_backoff, sync
from aioretry_smithy.smithy.interfaces import BackoffExhaustedError, ask_for_delay
from aioretry_smithy.testing import ScriptedTransport, VirtualTimeLoop


@pytest.mark.parametrize("kind", [Plain, Async])
async def test_strategy_of_ones_own_is_asked_for_each_token(kind):
    """Plain or async: a token before each attempt, and the last one goes back."""
    strategy = kind()
    status, log = await status_and_log(
        retrying_session([503, TimeoutError(), 200], strategy)
    )

    assert 200 == status
    assert [
        ("acquire", SCOPE),
        ("refresh", 0, "status 503"),
        ("refresh", 1, "TimeoutError"),
        ("success", 2),
    ] == strategy.seen
    assert [0.5, 0.5, None] == [child.delay for child in log.children]
    assert (None, None) == (log.stop_reason, log.retry_error)
    assert 1.0 == log.duration


async def test_strategy_that_returns_no_token_is_told_at_once():
    """A forgotten return is the likely slip."""

    class Forgetful(Plain):
        def refresh_retry_token_for_retry(self, **_):
            pass

    class Absent(Plain):
        def acquire_initial_retry_token(self, **_):
            pass

    for strategy, name in (
        (Forgetful(), "refresh_retry_token_for_retry"),
        (Absent(), "acquire_initial_retry_token"),
    ):
        with raises_exactly(f"{name}: None (expected: a token)"):
            await response_of(retrying_session([503], strategy))


@pytest.mark.parametrize("kind", [Plain, Async])
async def test_token_may_have_no_delay(kind):
    """None is no wait, as in Smithy's guide, before the first attempt and others."""

    class Hasty(kind):
        def refresh_retry_token_for_retry(self, *, token_to_renew, error):
            return Token(token_to_renew.retry_count + 1, None)

    status, log = await status_and_log(retrying_session([503, 503, 200], Hasty(None)))

    assert (200, 3, 0.0) == (status, len(log.children), now())


@pytest.mark.parametrize("delay", [-1.0, float("inf"), "1"])
async def test_token_with_a_senseless_delay_is_told_at_once(delay):
    """The delay in a strategy's token must be seconds."""
    with bad_argument("retry_delay", delay, "finite and >= 0, or None"):
        await response_of(retrying_session([200], Plain(delay)))


async def test_error_in_a_strategy_goes_to_the_caller():
    """With the failure of the attempt as its context."""

    class Broken(Plain):
        def refresh_retry_token_for_retry(self, **_):
            raise KeyError("oops")

    cause = TimeoutError()
    with capture_logs() as logs, pytest.raises(KeyError) as caught:
        await response_of(retrying_session([cause], Broken()))

    assert cause is caught.value.__context__
    assert RetryStopReason.ERROR == logs[0].stop_reason


async def test_error_while_recording_a_success_is_logged(caplog):
    """The call has succeeded, and stays so."""

    class Broken(Plain):
        def record_success(self, *, token):
            raise KeyError("oops")

    status, log = await status_and_log(retrying_session([200], Broken()))

    assert (200, None) == (status, log.stop_reason)
    (record,) = caplog.records
    assert ("aioretry_smithy", "WARNING") == (record.name, record.levelname)
    assert "a retry strategy failed to record a success" == record.message
    assert isinstance(record.exc_info[1], KeyError)


@pytest.mark.parametrize(
    "strategy", [smithy.StandardRetryStrategy, object(), "standard"]
)
def test_what_hands_out_no_tokens_is_no_strategy(strategy):
    """A class instead of an object of it is the likely slip."""
    with pytest.raises(ValueError, match="strategy: .* a Smithy strategy"):
        RetryingClient.new_decorator(strategy)


async def waits_of(strategy):
    """Make two calls, the second of which the quota ends, and return their waits."""
    waits = []
    async with retrying_session(
        [THROTTLED, 503, 200, THROTTLED, 503], strategy
    ) as client:
        for _ in range(2):
            async with client.get(URL) as response:
                log = RequestLog.of(response)
            waits += [(each.delay, each.delay_source) for each in log.children]
            waits.append(strategy.quota_for().available_capacity)
    return [*waits, now()]


@pytest.mark.parametrize("name", ["StandardRetryStrategy", "AdaptiveRetryStrategy"])
def test_plain_strategies_wait_as_the_awaited_ones(name):
    """Backoff, rate and quota are waited for by the loop, and seen in the log."""
    fixed = smithy.from_backoff(Backoff.fixed(0.5))
    seen = []
    for module, settings in (smithy, {}), (sync, {"sleep": pytest.fail}):
        strategy = getattr(module, name)(
            backoff_strategy=fixed,
            throttling_backoff_strategy=fixed,
            long_polling=True,
            retry_quota=smithy.StandardRetryQuota(20),
            **settings,
        )
        # Rates are measured by half seconds of the clock, so each begins at 0.
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            seen.append(runner.run(waits_of(strategy)))

    assert seen[0] == seen[1]
    assert [15, 10] == [value for value in seen[1] if isinstance(value, int)]
    assert seen[1][-1] >= 2.0


async def test_plain_simple_strategy_is_asked_by_its_methods():
    """They wait for nothing, so they may be called in a coroutine."""
    strategy = sync.SimpleRetryStrategy(
        backoff_strategy=smithy.from_backoff(Backoff.fixed(0.5))
    )
    status, log = await status_and_log(retrying_session([503, 503, 200], strategy))

    assert (200, 3, 1.0) == (status, len(log.children), now())


@pytest.mark.parametrize(
    ("kind", "settings", "is_refused"),
    [
        (sync.AdaptiveRetryStrategy, {}, True),
        (sync.AdaptiveRetryStrategy, {"fail_fast": True}, False),
        (sync.StandardRetryStrategy, {"long_polling": True}, True),
        (sync.StandardRetryStrategy, {}, False),
        (sync.SimpleRetryStrategy, {}, False),
        (smithy.AdaptiveRetryStrategy, {}, False),
        (smithy.StandardRetryStrategy, {"long_polling": True}, False),
    ],
)
async def test_methods_that_would_hold_up_the_loop_are_refused(
    kind, settings, is_refused
):
    """A subclass that overrides one is asked by its methods, which must not sleep."""

    class Mine(kind):
        def record_success(self, *, token):
            return super().record_success(token=token)

    assert RetryConfig(kind(**settings))
    strategy = Mine(**settings)
    if not is_refused:
        assert 200 == (await status_and_log(retrying_session([200], strategy)))[0]
        return
    with bad_argument(
        "strategy",
        strategy,
        "methods that do not sleep; derive from smithy, not smithy.sync",
    ):
        RetryingClient.new_decorator(strategy)


async def test_mocked_method_of_a_strategy_of_ours_is_asked(monkeypatch):
    """A replacement in the object counts as overriding."""
    strategy = standard()
    seen = []
    monkeypatch.setattr(strategy, "record_success", lambda *, token: seen.append(token))
    await status_and_log(retrying_session([200], strategy))

    assert 1 == len(seen)


async def test_subclass_that_overrides_a_method_is_asked_by_its_methods():
    """The overriding method decides."""
    refreshed = []

    class Watching(smithy.AdaptiveRetryStrategy):
        async def refresh_retry_token_for_retry(self, *, token_to_renew, error):
            refreshed.append(str(error))
            return await super().refresh_retry_token_for_retry(
                token_to_renew=token_to_renew, error=error
            )

    strategy = Watching(backoff_strategy=smithy.from_backoff(Backoff.fixed(0.5)))
    status, log = await status_and_log(retrying_session([503, 200], strategy))

    assert (200, ["status 503"]) == (status, refreshed)
    # It has waited itself, so there was no delay left to see.
    assert (0.0, 0.5) == (log.children[0].delay, log.duration)


def tenant(ctx, request):
    return request.headers.get("X-Tenant")


def scoped(token_scope, strategy=None):
    """Retry as a Smithy strategy says, in a scope."""
    strategy = strategy or smithy.StandardRetryStrategy()
    return RetryingClient.new_decorator(strategy, token_scope=token_scope)


async def call(decorator, *, answers=(503, 200), **options):
    """Make one call through a decorator."""
    await response_of(session(answers, decorator), **options)


def spent(strategy, *scopes):
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


async def later(ctx, request):
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


class Linear:
    """A backoff strategy as users write them."""

    def compute_next_backoff_delay(self, retry_attempt):
        return 0.5 * retry_attempt


def test_backoff_waits_as_the_strategy_says():
    """The number of the attempt that failed is the number of the retry."""
    backoff = to_backoff(Linear())
    delays = [backoff.next_delay(n) for n in (1, 2, 3)]

    assert [0.5, 1.0, 1.5] == delays
    assert isinstance(backoff, Backoff)


@pytest.mark.parametrize("count", [0, -1, True, 1.0])
def test_backoff_of_a_strategy_counts_from_1(count):
    """Attempt 0, which a strategy knows, is no failed attempt."""
    with bad_argument("num_attempts_so_far", count, "an int >= 1"):
        to_backoff(Linear()).next_delay(count)


def test_strategy_waits_as_the_backoff_says():
    """The number of the retry is the number of the attempt that failed."""
    strategy = from_backoff(Backoff.exponential(1, 3))
    delays = [strategy.compute_next_backoff_delay(n) for n in (0, 1, 2, 3)]

    assert [0.0, 1.0, 2.0, 3.0] == delays


def test_strategy_of_an_exhausted_backoff_refuses():
    """A backoff that stops ends the call, and says after which attempt."""
    strategy = from_backoff(Backoff.fixed(1).with_max_attempts(2))

    assert 1.0 == strategy.compute_next_backoff_delay(1)
    with pytest.raises(
        BackoffExhaustedError, match=r"^no delay left after 2 attempts$"
    ):
        strategy.compute_next_backoff_delay(2)


def test_bridges_are_equal_where_their_ends_are():
    """Settings made twice are the same settings, and say what they are made of."""
    strategy = from_backoff(Backoff.fixed(1))

    assert from_backoff(Backoff.fixed(1)) == strategy
    assert "from_backoff(Backoff.fixed(1.0))" == repr(strategy)
    assert to_backoff(strategy) == to_backoff(strategy)
    assert "to_backoff(from_backoff(Backoff.fixed(1.0)))" == repr(to_backoff(strategy))


@pytest.mark.parametrize("other", [None, 1.0, Backoff.fixed(1), "Linear", Linear])
def test_bridge_to_backoff_needs_a_strategy(other):
    """Neither a Backoff nor a class is one; the error says how a Backoff becomes it."""
    with bad_argument(
        "backoff_strategy",
        other,
        "an object with compute_next_backoff_delay(); see from_backoff()",
    ):
        to_backoff(other)


@pytest.mark.parametrize("other", [None, 1.0, "fixed=1s"])
def test_bridge_from_backoff_needs_a_backoff(other):
    """The text that one is made from is no Backoff."""
    with bad_argument("backoff", other, "a Backoff"):
        from_backoff(other)


def test_exhausted_backoff_ends_a_call_for_a_reason():
    """The refusal comes from the error of the attempt, as any other one."""
    error = ConnectionResetError()
    strategy = from_backoff(Backoff.fixed(1).with_max_attempts(1))
    with pytest.raises(BackoffExhaustedError) as caught:
        ask_for_delay(strategy, 1, error)

    assert error is caught.value.__cause__


def test_there_and_back_again_nothing_changes():
    """A backoff that stops still does when it has been a strategy meanwhile."""
    backoff = to_backoff(from_backoff(Backoff.fixed(1).with_max_attempts(2)))

    assert [1.0, None] == [backoff.next_delay(n) for n in (1, 2)]
