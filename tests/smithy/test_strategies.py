"""What the strategies of all modes have in common, the simple mode, and tokens."""

import dataclasses
from collections import Counter

import pytest
from chains import bad_argument, in_threads, raises_exactly
from token_strategies import UNAVAILABLE, acquire, refresh, settled

from aioretry_smithy import Backoff
from aioretry_smithy.smithy import (
    AdaptiveRetryStrategy,
    BackoffExhaustedError,
    CallError,
    ExponentialRetryBackoffStrategy,
    RetryError,
    SimpleRetryStrategy,
    SimpleRetryToken,
    StandardRetryQuota,
    StandardRetryStrategy,
    StandardRetryToken,
    from_backoff,
    sync,
)
from aioretry_smithy.smithy.strategies import PerScope, use_token

KINDS = {
    "simple": SimpleRetryStrategy,
    "standard": StandardRetryStrategy,
    "adaptive": AdaptiveRetryStrategy,
    "simple, plain": sync.SimpleRetryStrategy,
    "standard, plain": sync.StandardRetryStrategy,
    "adaptive, plain": sync.AdaptiveRetryStrategy,
}
NOW = from_backoff(Backoff.fixed(0))
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.fixture
def strategy(kind):
    """A strategy with three attempts that nobody waits for."""
    return kind(backoff_strategy=NOW, max_attempts=3)


def left_in(strategy):
    """Return what the quota can pay, where there is one."""
    if hasattr(strategy, "quota_for"):
        return strategy.quota_for().available_capacity
    return None


async def succeed(strategy, token):
    return await settled(strategy.record_success(token=token))


@each_kind
async def test_attempts_have_an_end(strategy):
    """After the last attempt there is no token; it costs nothing, and says why."""
    token = await refresh(strategy, await acquire(strategy))
    token = await refresh(strategy, token)
    left = left_in(strategy)
    with raises_exactly("all attempts are made: 3", RetryError) as caught:
        await refresh(strategy, token)

    assert UNAVAILABLE is caught.value.__cause__
    assert caught.value.retry_after is None
    assert left == left_in(strategy)


@each_kind
@pytest.mark.parametrize("max_attempts", [1, 3])
@pytest.mark.parametrize("error", [ValueError("bad"), CallError(is_retry_safe=False)])
async def test_error_that_allows_no_retry_ends_the_call(kind, max_attempts, error):
    """It comes first, also after the last attempt, and costs nothing."""
    strategy = kind(backoff_strategy=NOW, max_attempts=max_attempts)
    token, left = await acquire(strategy), left_in(strategy)
    with raises_exactly(f"the error allows no retry: {error!r}", RetryError) as caught:
        await refresh(strategy, token, error)

    assert error is caught.value.__cause__
    assert caught.value.retry_after is None
    assert left == left_in(strategy)


@each_kind
async def test_exhausted_backoff_ends_the_call(kind):
    """A Backoff that stops is a refusal like any other, and comes before the quota."""
    backoff = Backoff.fixed(1).with_max_attempts(1)
    strategy = kind(backoff_strategy=from_backoff(backoff))
    token, left = await acquire(strategy), left_in(strategy)
    with pytest.raises(BackoffExhaustedError) as caught:
        await refresh(strategy, token)

    assert UNAVAILABLE is caught.value.__cause__
    assert caught.value.retry_after is None
    assert left == left_in(strategy)


@each_kind
@pytest.mark.parametrize("used_by", ["refresh", "refusal", "success"])
async def test_token_is_good_for_one_use(strategy, used_by):
    """Whatever a token was used for, it can neither be charged nor refunded again."""
    token = await refresh(strategy, await acquire(strategy))
    if used_by == "refresh":
        await refresh(strategy, token)
    elif used_by == "success":
        await succeed(strategy, token)
    else:
        with pytest.raises(RetryError):
            await refresh(strategy, token, ValueError())
    left = left_in(strategy)

    with bad_argument("token_to_renew", token, "not used before"):
        await refresh(strategy, token)
    with bad_argument("token", token, "not used before"):
        await succeed(strategy, token)
    assert left == left_in(strategy)


@each_kind
async def test_token_of_another_strategy_is_refused(kind, strategy):
    """The mistake is named, and the token stays good where it came from."""
    other = kind()
    token = await acquire(other)

    with bad_argument("token_to_renew", token, "issued by this strategy"):
        await refresh(strategy, token)
    with bad_argument("token", token, "issued by this strategy"):
        await succeed(strategy, token)
    await succeed(other, token)


@each_kind
@pytest.mark.parametrize("thing", [None, "token", 0, StandardRetryToken, "simple"])
async def test_something_else_is_no_token(kind, strategy, thing):
    """It is a mistake in the program; a token of another kind is one too."""
    is_simple = kind.__name__ == "SimpleRetryStrategy"
    if thing == "simple" and not is_simple:
        thing = await acquire(SimpleRetryStrategy())
    expected = "a SimpleRetryToken" if is_simple else "a StandardRetryToken"

    with bad_argument("token_to_renew", thing, expected, TypeError):
        await refresh(strategy, thing)
    with bad_argument("token", thing, expected, TypeError):
        await succeed(strategy, thing)


@each_kind
@pytest.mark.parametrize("scope", [443, b"example.com", ("example.com", 443)])
async def test_scope_is_text(strategy, scope):
    """A scope that could not be told from another one is refused."""
    with bad_argument("token_scope", scope, "a str, or None"):
        await acquire(strategy, scope)


@each_kind
def test_falsy_backoff_strategy_is_kept(kind):
    """A strategy that has a length of 0 is one all the same."""

    class Empty:
        def __len__(self):
            return 0

        def compute_next_backoff_delay(self, retry_attempt):
            return 0.0

    empty = Empty()

    assert empty is kind(backoff_strategy=empty).backoff_strategy


class Linear:
    """A backoff strategy that also makes the first attempt wait."""

    def compute_next_backoff_delay(self, retry_attempt):
        return 0.5 + retry_attempt


@pytest.fixture
def linear():
    """A strategy with three attempts and delays that are easily told apart."""
    return SimpleRetryStrategy(backoff_strategy=Linear(), max_attempts=3)


def test_defaults_are_those_of_smithy_python():
    """Five attempts, and the default backoff."""
    strategy = SimpleRetryStrategy()

    assert 5 == strategy.max_attempts
    assert ExponentialRetryBackoffStrategy() == strategy.backoff_strategy


async def test_tokens_count_attempts_and_have_delays(linear):
    """The delay of each attempt is what the backoff strategy says, also the first."""
    tokens = [await acquire(linear, "orders")]
    for _ in range(2):
        tokens.append(await refresh(linear, tokens[-1]))
    await linear.record_success(token=tokens[-1])

    assert [(0, 1, 0.5), (1, 2, 1.5), (2, 3, 2.5)] == [
        (token.retry_count, token.attempt_count, token.retry_delay) for token in tokens
    ]


@pytest.mark.parametrize(("hint", "delay"), [(0.0, 1.5), (1.0, 1.5), (60.0, 60.0)])
async def test_hint_of_the_server_is_a_floor(linear, hint, delay):
    """The server gets its wish, and the delay is never shorter than without."""
    error = CallError(fault="server", retry_after=hint)
    token = await refresh(linear, await acquire(linear), error)

    assert delay == token.retry_delay


async def test_repr_shows_the_settings():
    """Strategies and tokens can be read in a log."""
    backoff = from_backoff(Backoff.fixed(1))
    strategy = SimpleRetryStrategy(backoff_strategy=backoff, max_attempts=2)
    token = await acquire(strategy)

    assert (
        "SimpleRetryStrategy(backoff_strategy=from_backoff(Backoff.fixed(1.0)), "
        "max_attempts=2)"
    ) == repr(strategy)
    assert "SimpleRetryToken(retry_count=0, retry_delay=0.0)" == repr(token)


EACH_KIND = pytest.mark.parametrize(
    ("strategy", "kind"),
    [
        (SimpleRetryStrategy(), SimpleRetryToken),
        (StandardRetryStrategy(), StandardRetryToken),
    ],
    ids=["simple", "standard"],
)


@EACH_KIND
@pytest.mark.parametrize("changes", [{}, {"retry_delay": 9.0}, {"retry_count": 0}])
async def test_replaced_token_has_the_same_one_use(strategy, kind, changes):
    """Neither the one nor the other is good twice, or both once."""
    used = await strategy.acquire_initial_retry_token()
    use_token("token", used, kind, strategy)
    token = await strategy.acquire_initial_retry_token()
    use_token("token", dataclasses.replace(token, **changes), kind, strategy)

    for spent in (dataclasses.replace(used, **changes), token):
        with pytest.raises(ValueError, match="not used before"):
            use_token("token", spent, kind, strategy)


@EACH_KIND
def test_token_made_by_hand_is_refused(strategy, kind):
    """Nobody can give himself a retry, or a refund, nor name who has issued it."""
    token = kind(retry_count=0, retry_delay=0.0)
    with bad_argument("token", token, "issued by this strategy"):
        use_token("token", token, kind, strategy)
    with pytest.raises(TypeError, match="issuer"):
        kind(retry_count=0, retry_delay=0.0, issuer=strategy)


@EACH_KIND
async def test_settings_with_a_token_can_be_taken_apart(strategy, kind):
    """Also by what copies whatever it finds."""
    token = await strategy.acquire_initial_retry_token(token_scope="orders")
    content = dataclasses.asdict(token)

    assert (0, 0.0) == (content["retry_count"], content["retry_delay"])


@EACH_KIND
async def test_tokens_are_told_apart_by_identity(strategy, kind):
    """Two tokens with the same content are still two."""
    tokens = {await strategy.acquire_initial_retry_token() for _ in range(2)}

    assert 2 == len(tokens)


@pytest.mark.usefixtures("eager_threads")
def test_one_thread_uses_a_token():
    """Of several threads with the same token one gets the retry, and none hangs."""
    strategy = StandardRetryStrategy(retry_quota=StandardRetryQuota(14 * 15))
    tokens = [strategy._acquire(None) for _ in range(20)]
    outcomes = []

    def use():
        for token in tokens:
            try:
                outcomes.append(strategy._refresh(token, UNAVAILABLE).quota_acquired)
            except RetryError:
                outcomes.append("refused")
            except ValueError:
                outcomes.append("used before")

    in_threads(use)

    assert {14: 15, "refused": 5, "used before": 140} == Counter(outcomes)


@pytest.fixture
def quotas():
    """A quota for each scope."""
    return PerScope(StandardRetryQuota)


def test_scope_without_a_name_is_one_too(quotas):
    """None and the empty name are the same scope."""
    nameless = quotas.get()

    assert nameless is quotas.get(None) is quotas.get("")
    assert nameless is not quotas.get("a")


def test_given_object_is_for_all_scopes():
    """Then none is made."""
    quota = StandardRetryQuota()
    quotas = PerScope(lambda: pytest.fail("made one"), quota)

    assert quota is quotas.given is quotas.get() is quotas.get("a")


def test_falsy_object_is_given_all_the_same():
    """Only None is no object."""
    assert 0 == PerScope(lambda: 1, 0).get("a")


def test_scopes_are_forgotten_in_the_end(quotas):
    """A crawler meets any number of hosts; 1024 of them are remembered."""
    oldest, used_again = quotas.get("oldest"), quotas.get("used again")
    for host in range(1022):
        quotas.get(str(host))
    assert used_again is quotas.get("used again")
    assert oldest is quotas.get("oldest")

    quotas.get("used again")
    quotas.get("one more")
    second_oldest = quotas.get("1")
    for host in range(1022):
        quotas.get(f"other {host}")

    assert second_oldest is quotas.get("1")
    assert oldest is not quotas.get("oldest")


@pytest.mark.parametrize("scope", [443, b"example.com", ("example.com", 443)])
@pytest.mark.parametrize("given", [None, StandardRetryQuota()])
def test_scope_of_an_object_is_text(scope, given):
    """A scope that is no name is refused, also where it would make no difference."""
    with bad_argument("token_scope", scope, "a str, or None"):
        PerScope(StandardRetryQuota, given).get(scope)


@pytest.mark.usefixtures("eager_threads")
def test_threads_get_the_same_object_for_a_scope(quotas):
    """A scope that is met by several threads at once still has one object."""
    found = []
    in_threads(
        lambda: found.extend((scope, quotas.get(str(scope))) for scope in range(20))
    )

    assert 160 == len(found)
    assert 20 == len({*found})
