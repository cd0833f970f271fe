"""The standard mode, and the vectors of all SDKs."""

import asyncio
import math
from dataclasses import replace

import pytest
from chains import now, raises_exactly
from token_strategies import UNAVAILABLE as ERROR
from token_strategies import Slow, acquire, load, read, refresh, settled

from aioretry_smithy import Backoff
from aioretry_smithy.smithy import (
    CallError,
    ExponentialBackoffJitterType,
    ExponentialRetryBackoffStrategy,
    RetryError,
    RetryProfile,
    StandardRetryQuota,
    StandardRetryStrategy,
    from_backoff,
    sync,
)

THROTTLED = CallError("429", is_throttling_error=True, status=429)
EMPTY = StandardRetryQuota(0)


class Steps:
    """A backoff strategy whose delays are multiples of one step."""

    def __init__(self, step):
        self.step = step

    def compute_next_backoff_delay(self, retry_attempt):
        return self.step * retry_attempt


@pytest.fixture
def quota():
    """A quota that pays for three retries, or for eight that are throttled."""
    return StandardRetryQuota(42)


@pytest.fixture
def strategy(quota):
    """A strategy with delays that are easily told apart."""
    return StandardRetryStrategy(
        backoff_strategy=Steps(1.0),
        throttling_backoff_strategy=Steps(10.0),
        max_attempts=3,
        retry_quota=quota,
    )


async def retry(strategy, error=ERROR, scope=None):
    """Let the first attempt of a call fail, and ask for a second one."""
    return await refresh(strategy, await acquire(strategy, scope), error)


@pytest.mark.parametrize(
    "profile",
    [
        RetryProfile.V2_1,
        RetryProfile.V2_0,
        RetryProfile.DYNAMODB,
        RetryProfile(max_attempts=9, max_backoff=3.0),
    ],
)
def test_defaults_are_the_constants_of_the_profile(profile):
    """Attempts and both backoffs, with full jitter, come from the profile."""
    strategy = StandardRetryStrategy(profile=profile)
    backoff = ExponentialRetryBackoffStrategy(
        backoff_scale_value=profile.backoff_scale_value,
        max_backoff=profile.max_backoff,
        jitter_type=ExponentialBackoffJitterType.FULL,
    )

    assert profile.max_attempts == strategy.max_attempts
    assert backoff == strategy.backoff_strategy
    assert (
        replace(backoff, backoff_scale_value=1) == strategy.throttling_backoff_strategy
    )
    assert strategy.long_polling is False
    assert 500 == strategy.quota_for().available_capacity


def test_quota_has_the_prices_of_the_profile():
    """A profile with free retries makes a quota that never refuses."""
    profile = RetryProfile(retry_cost=0)
    strategy = StandardRetryStrategy(profile=profile)

    assert 0 == strategy.quota_for("example.com:443").acquire(error=ERROR)


def test_throttling_keeps_its_own_default():
    """A backoff for other errors says nothing about those that throttle."""
    own = StandardRetryStrategy(backoff_strategy=Steps(1.0))

    expected = StandardRetryStrategy().throttling_backoff_strategy
    assert expected == own.throttling_backoff_strategy


async def test_tokens_say_what_there_is_to_know(strategy, quota):
    """Count, delay, price and scope go with the token of each attempt."""
    first = await strategy.acquire_initial_retry_token(token_scope="orders")
    second = await refresh(strategy, first)
    third = await refresh(strategy, second, THROTTLED)

    assert [(0, 1, 0.0, 0), (1, 2, 1.0, 14), (2, 3, 20.0, 5)] == [
        (t.retry_count, t.attempt_count, t.retry_delay, t.quota_acquired)
        for t in (first, second, third)
    ]
    assert {"orders"} == {t.token_scope for t in (first, second, third)}
    assert 42 - 14 - 5 == quota.available_capacity


async def test_first_attempt_can_have_a_delay():
    """A backoff strategy may let even the first attempt wait."""
    strategy = StandardRetryStrategy(backoff_strategy=Slow())

    assert 0.5 == (await acquire(strategy)).retry_delay


async def test_first_attempt_needs_no_quota():
    """An empty quota refuses retries, not calls."""
    strategy = StandardRetryStrategy(retry_quota=EMPTY)

    assert 0 == (await acquire(strategy)).retry_count


async def test_success_brings_back_what_the_last_retry_has_cost(strategy, quota):
    """Of several retries only the last one is refunded."""
    token = await refresh(strategy, await retry(strategy), THROTTLED)
    await strategy.record_success(token=token)

    assert 42 - 14 == quota.available_capacity


async def test_success_at_once_brings_one(strategy, quota):
    """Calls without retries slowly fill the quota again."""
    await retry(strategy)
    token = await strategy.acquire_initial_retry_token()
    await strategy.record_success(token=token)

    assert 42 - 14 + 1 == quota.available_capacity


async def test_refusal_by_the_quota_carries_the_delay(strategy, quota):
    """Only this refusal says for how long there would have been a wait."""
    quota.acquire(error=ERROR)
    quota.acquire(error=ERROR)
    quota.acquire(error=THROTTLED)
    token = await strategy.acquire_initial_retry_token()
    said = "Retry quota exceeded: needs 14 tokens, 9 left"
    with raises_exactly(said, RetryError) as caught:
        await refresh(strategy, token)

    assert 1.0 == caught.value.retry_after
    assert ERROR is caught.value.__cause__
    assert 9 == quota.available_capacity


@pytest.mark.parametrize(
    ("profile", "hints"),
    [
        # By delays and hints: never shorter, and by 5 s longer at most,
        ("V2_1", {0.0: 1.0, 0.5: 1.0, 3.5: 3.5, 6.0: 6.0, 6.5: 6.0}),
        # up to 20 s by any hint,
        ("V2_0", {0.5: 1.0, 19.5: 19.5, 20.5: 20.0, 3600.0: 20.0}),
        # or as long as the server asks for.
        ("GUIDE", {0.5: 1.0, 20.5: 20.5, 3600.0: 3600.0, 1e9: 1e9}),
    ],
)
async def test_hint_can_add_so_much_to_the_delay(profile, hints):
    """As much as the profile says, and it is never shorter than without."""
    found = {}
    for hint in hints:
        strategy = StandardRetryStrategy(
            profile=getattr(RetryProfile, profile), backoff_strategy=Steps(1.0)
        )
        error = CallError(fault="server", retry_after=hint)
        found[hint] = (await retry(strategy, error)).retry_delay

    assert hints == found


async def test_hint_never_shortens_a_delay_above_the_limit():
    """V2_0: a backoff of one's own may wait for longer than 20 s."""
    strategy = StandardRetryStrategy(
        profile=RetryProfile.V2_0, backoff_strategy=Steps(30.0)
    )
    error = CallError(fault="server", retry_after=25.0)

    assert 30.0 == (await retry(strategy, error)).retry_delay


async def test_throttling_has_its_own_delays(strategy):
    """An error that throttles is waited for longer, by the same count of retries."""
    token = await retry(strategy)
    token = await refresh(strategy, token, THROTTLED)

    assert 20.0 == token.retry_delay


async def test_senseless_delay_costs_nothing(quota):
    """A backoff strategy with a bug is named before anything is paid."""
    strategy = StandardRetryStrategy(backoff_strategy=Steps(1.0), retry_quota=quota)
    token = await strategy.acquire_initial_retry_token()
    strategy.backoff_strategy.step = math.nan
    with pytest.raises(ValueError, match="^compute_next_backoff_delay: nan"):
        await refresh(strategy, token)

    assert 42 == quota.available_capacity


@pytest.mark.parametrize(
    ("settings", "waited"),
    [
        ({"retry_quota": EMPTY, "long_polling": True}, 3.0),
        ({"retry_quota": EMPTY}, 0.0),
        ({"max_attempts": 1, "long_polling": True}, 0.0),
    ],
)
async def test_long_polling_waits_before_a_refusal_by_the_quota(settings, waited):
    """A call in an endless loop does not spin then; others end at once."""
    strategy = StandardRetryStrategy(backoff_strategy=Steps(3.0), **settings)
    with pytest.raises(RetryError) as caught:
        await retry(strategy)

    assert waited == now()
    assert (3.0 if "retry_quota" in settings else None) == caught.value.retry_after


async def test_each_scope_has_its_own_quota():
    """A server that fails does not use up the retries of another one."""
    strategy = StandardRetryStrategy()
    await retry(strategy, scope="a:443")
    await retry(strategy, scope=None)
    await retry(strategy, scope=None)

    assert 486 == strategy.quota_for("a:443").available_capacity
    assert 500 == strategy.quota_for("b:443").available_capacity
    assert 472 == strategy.quota_for().available_capacity
    assert strategy.quota_for("") is strategy.quota_for()


async def test_refund_goes_to_the_quota_that_paid():
    """A success in one scope fills no other one."""
    strategy = StandardRetryStrategy()
    token = await retry(strategy, scope="a:443")
    await retry(strategy, scope="b:443")
    await strategy.record_success(token=token)

    assert 500 == strategy.quota_for("a:443").available_capacity
    assert 486 == strategy.quota_for("b:443").available_capacity


async def test_given_quota_pays_for_all_scopes(strategy, quota):
    """One quota for everything, also for other strategies, if that is wanted."""
    other = StandardRetryStrategy(retry_quota=quota)
    await retry(strategy, scope="a:443")
    await retry(other, scope="b:443")

    assert quota is strategy.quota_for("a:443")
    assert 42 - 28 == quota.available_capacity


async def test_prices_are_those_of_the_quota(quota):
    """A quota that is given has a profile of its own."""
    strategy = StandardRetryStrategy(profile=RetryProfile.V2_0, retry_quota=quota)

    assert 14 == (await retry(strategy)).quota_acquired


def test_subclass_may_have_arguments_of_its_own():
    """A strategy of one's own adds settings, and keeps everything else."""

    class Named(StandardRetryStrategy):
        def __init__(self, name, **settings):
            super().__init__(**settings)
            self.name = name

    strategy = Named("orders", max_attempts=7)

    assert ("orders", 7) == (strategy.name, strategy.max_attempts)
    assert repr(strategy).startswith("Named(profile=RetryProfile.V2_1, ")


def test_repr_shows_the_settings():
    """It says how such a strategy is made, in one line."""
    delays = from_backoff(Backoff.fixed(1))
    settings = {"backoff_strategy": delays, "throttling_backoff_strategy": delays}
    given = (
        "profile=RetryProfile.V2_1, backoff_strategy=from_backoff(Backoff.fixed(1.0)), "
        "throttling_backoff_strategy=from_backoff(Backoff.fixed(1.0)), max_attempts=3"
    )
    quota = "StandardRetryQuota(0, profile=RetryProfile.V2_1)"

    assert f"StandardRetryStrategy({given})" == repr(StandardRetryStrategy(**settings))
    assert (
        f"StandardRetryStrategy({given}, retry_quota={quota}, long_polling=True)"
        == repr(StandardRetryStrategy(**settings, retry_quota=EMPTY, long_polling=True))
    )


async def test_repr_of_a_token_shows_what_it_is_for(strategy):
    """A token can be read in a log."""
    token = await retry(strategy, scope="orders")

    assert (
        "StandardRetryToken(retry_count=1, retry_delay=1.0, quota_acquired=14, "
        "token_scope='orders')"
    ) == repr(token)


@pytest.mark.parametrize(
    ("profile", "paid"),
    [
        (RetryProfile.V2_1, 14),
        (RetryProfile.GUIDE, 5),
        (RetryProfile(retry_cost=0), 0),
    ],
)
async def test_retry_that_is_not_made_is_paid_back(profile, paid):
    """The quota is as before, whatever the retry has cost and a success brings."""
    strategy = StandardRetryStrategy(profile=profile)
    quota = strategy.quota_for("orders")
    quota.acquire(error=THROTTLED)
    token = await retry(strategy, scope="orders")
    left = quota.available_capacity
    strategy._release(token)

    assert 500 - 5 - paid == left
    assert 500 - 5 == quota.available_capacity


VECTORS = load()
JITTER = read("backoff_jitter.json")["vectors"]


class AttemptError(Exception):
    """An attempt that failed, and says what the vector says about it."""

    def __init__(self, said):
        super().__init__(said)
        vars(self).update({"is_retry_safe": True, **said})


def outcome_of(refusal, error, token, strategy):
    """Say why there was no further token, judging by what the refusal says."""
    if not error.is_retry_safe:
        return "not_retryable"
    if refusal.retry_after is not None:
        return "quota_exceeded"
    assert strategy.max_attempts == token.attempt_count
    return "max_attempts_exceeded"


async def replay(strategy, call, now):
    """Make one call and return what happened after each attempt."""
    happened = []
    scope = "example.com:443"
    token = await acquire(strategy, scope)
    for step in call:
        started_at = now()
        delay = 0.0
        error = AttemptError(step.error or {})
        if step.outcome == "success":
            await settled(strategy.record_success(token=token))
            outcome = "success"
        else:
            try:
                token = await refresh(strategy, token, error)
                outcome, delay = "retry", token.retry_delay
            except RetryError as refusal:
                outcome = outcome_of(refusal, error, token, strategy)
        quota = strategy.quota_for(scope).available_capacity
        happened.append((outcome, quota, delay, now() - started_at))
    return happened


async def check(vector, strategy, now):
    for call in vector.calls:
        expected = [
            (step.outcome, step.quota, step.delay, step.refused_delay) for step in call
        ]
        happened = await replay(strategy, call, now)

        assert expected == [
            (outcome, quota, pytest.approx(delay), pytest.approx(waited))
            for outcome, quota, delay, waited in happened
        ]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
async def test_standard_vector(vector):
    """Outcome, quota, delay and wait are those of SDKs and guide, step by step."""
    loop = asyncio.get_running_loop()

    await check(vector, vector.new_strategy(), loop.time)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
async def test_standard_vector_without_await(vector):
    """The same, by plain methods, and what is waited for the thread sleeps."""
    slept = [0.0]
    strategy = vector.new_strategy(sync.StandardRetryStrategy, sleep=slept.append)

    await check(vector, strategy, lambda: sum(slept))


@pytest.mark.parametrize(
    "vector", JITTER, ids=lambda vector: "{jitter} {scale} {max}".format(**vector)
)
def test_jitter_vector(vector):
    """The delays are those of smithy-python."""
    backoff = ExponentialRetryBackoffStrategy(
        backoff_scale_value=vector["scale"],
        max_backoff=vector["max"],
        jitter_type=ExponentialBackoffJitterType[vector["jitter"]],
        random=lambda: 0.5,
    )
    delays = [
        backoff.compute_next_backoff_delay(n) for n in range(len(vector["delays"]))
    ]

    assert vector["delays"] == pytest.approx(delays)
