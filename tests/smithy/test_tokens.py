"""Tokens, each good for one use at the strategy that issued it."""

import copy
import dataclasses
import pickle
from collections import Counter

import pytest
from chains import bad_argument, in_threads
from token_strategies import UNAVAILABLE as ERROR
from token_strategies import acquire, refresh

from aioretry_smithy.smithy.interfaces import RetryError
from aioretry_smithy.smithy.limiters import StandardRetryQuota
from aioretry_smithy.smithy.strategies import (
    SimpleRetryStrategy,
    SimpleRetryToken,
    StandardRetryStrategy,
    StandardRetryToken,
    use_token,
)

EACH_KIND = pytest.mark.parametrize(
    ("strategy", "kind"),
    [
        (SimpleRetryStrategy(), SimpleRetryToken),
        (StandardRetryStrategy(), StandardRetryToken),
    ],
    ids=["simple", "standard"],
)


@EACH_KIND
async def test_token_is_used_once(strategy, kind):
    """It is handed back, and then it is worth nothing."""
    token = await acquire(strategy)

    assert token is use_token("token", token, kind, strategy)
    with bad_argument("token", token, "not used before"):
        use_token("token", token, kind, strategy)


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


async def test_replaced_token_brings_one_refund():
    """The quota does not grow by tokens that were changed."""
    quota = StandardRetryQuota(100)
    strategy = StandardRetryStrategy(retry_quota=quota)
    token = await refresh(strategy, await acquire(strategy))
    quota.acquire(error=ERROR)
    await strategy.record_success(token=dataclasses.replace(token, retry_delay=0.0))
    for _ in range(3):
        with pytest.raises(ValueError, match="not used before"):
            await strategy.record_success(token=dataclasses.replace(token))

    assert 100 - 14 == quota.available_capacity


@EACH_KIND
def test_token_made_by_hand_is_refused(strategy, kind):
    """Nobody can give himself a retry, or a refund, nor name who has issued it."""
    token = kind(retry_count=0, retry_delay=0.0)
    with bad_argument("token", token, "issued by this strategy"):
        use_token("token", token, kind, strategy)
    with pytest.raises(TypeError, match="issuer"):
        kind(retry_count=0, retry_delay=0.0, issuer=strategy)


@EACH_KIND
async def test_copy_is_the_token_itself(strategy, kind):
    """A copy of a token is no second one."""
    token = await strategy.acquire_initial_retry_token()

    assert token is copy.copy(token)
    assert token is copy.deepcopy([token])[0]


@EACH_KIND
async def test_settings_with_a_token_can_be_taken_apart(strategy, kind):
    """Also by what copies whatever it finds."""
    token = await strategy.acquire_initial_retry_token(token_scope="orders")
    content = dataclasses.asdict(token)

    assert (0, 0.0) == (content["retry_count"], content["retry_delay"])


@EACH_KIND
async def test_token_is_not_pickled(strategy, kind):
    """No other process has the strategy that would take it."""
    token = await strategy.acquire_initial_retry_token()
    expected = f"^{kind.__name__} cannot be pickled: it holds shared state$"
    with pytest.raises(TypeError, match=expected):
        pickle.dumps(token)


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
                outcomes.append(strategy._refresh(token, ERROR).quota_acquired)
            except RetryError:
                outcomes.append("refused")
            except ValueError:
                outcomes.append("used before")

    in_threads(use)

    assert {14: 15, "refused": 5, "used before": 140} == Counter(outcomes)
