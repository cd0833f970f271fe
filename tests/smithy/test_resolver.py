"""One strategy for all who ask for the same settings."""

from __future__ import annotations

import asyncio
import copy

import pytest
from chains import in_threads, raises_exactly

from aioretry_smithy.smithy.mode import (
    RetryMode,
    RetryStrategyOptions,
    RetryStrategyResolver,
)
from aioretry_smithy.smithy.strategies import (
    AdaptiveRetryStrategy,
    SimpleRetryStrategy,
    StandardRetryStrategy,
)

NAMES = "simple, standard or adaptive"


@pytest.mark.parametrize(
    ("options", "kind", "max_attempts"),
    [
        (None, StandardRetryStrategy, 3),
        (RetryStrategyOptions(), StandardRetryStrategy, 3),
        (RetryStrategyOptions(max_attempts=5), StandardRetryStrategy, 5),
        (RetryStrategyOptions(retry_mode="simple"), SimpleRetryStrategy, 5),
        (
            RetryStrategyOptions(retry_mode="adaptive", max_attempts=2),
            AdaptiveRetryStrategy,
            2,
        ),
    ],
)
async def test_strategy_is_made_of_options(options, kind, max_attempts):
    """None leaves everything to what is usual."""
    resolver = RetryStrategyResolver()
    strategy = await resolver.resolve_retry_strategy(retry_strategy=options)

    assert (kind, max_attempts) == (type(strategy), strategy.max_attempts)


async def test_same_settings_share_a_strategy():
    """And with it a quota; other settings, or another resolver, do not."""
    resolver = RetryStrategyResolver()
    settings = [
        None,
        RetryStrategyOptions(),
        RetryStrategyOptions(retry_mode=RetryMode.STANDARD),
        RetryStrategyOptions(retry_mode=" Standard "),
        RetryStrategyOptions(max_attempts=3),
        RetryStrategyOptions(retry_mode="adaptive"),
    ]
    first, *others = [
        await resolver.resolve_retry_strategy(retry_strategy=each) for each in settings
    ]
    elsewhere = await RetryStrategyResolver().resolve_retry_strategy(
        retry_strategy=None
    )

    assert [True, True, True, False, False] == [each is first for each in others]
    assert elsewhere is not first


async def test_separate_settings_hold_where_there_is_no_strategy():
    """They are what the environment says; what a program says stands above it."""
    resolver = RetryStrategyResolver()
    resolve = resolver.resolve_retry_strategy
    fallen_back = await resolve(
        retry_strategy=None, retry_mode="simple", max_attempts=2
    )
    explicit = await resolve(
        retry_strategy=RetryStrategyOptions(), retry_mode="simple", max_attempts=2
    )

    assert (SimpleRetryStrategy, 2) == (type(fallen_back), fallen_back.max_attempts)
    assert (StandardRetryStrategy, 3) == (type(explicit), explicit.max_attempts)


async def test_strategy_is_returned_as_it_is():
    """A strategy that is given needs no settings to find another."""
    strategy = SimpleRetryStrategy(max_attempts=7)
    resolved = await RetryStrategyResolver().resolve_retry_strategy(
        retry_strategy=strategy, retry_mode="adaptive"
    )

    assert strategy is resolved


@pytest.mark.parametrize("given", ["standard", 5, SimpleRetryStrategy, object()])
async def test_what_is_neither_strategy_nor_options_is_refused(given):
    """The name of a mode belongs into the options."""
    expected = "RetryStrategy, RetryStrategyOptions, or None"
    with raises_exactly(f"retry_strategy must be {expected}, not {given!r}", TypeError):
        await RetryStrategyResolver().resolve_retry_strategy(retry_strategy=given)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"retry_mode": "off"}, f"retry_mode: 'off' (expected: {NAMES})"),
        ({"retry_mode": 5}, f"retry_mode: 5 (expected: {NAMES})"),
        ({"max_attempts": 0}, "max_attempts: 0 (expected: an int >= 1, or None)"),
        ({"max_attempts": True}, "max_attempts: True (expected: an int >= 1, or None)"),
        ({"max_attempts": "3"}, "max_attempts: '3' (expected: an int >= 1, or None)"),
    ],
)
async def test_bad_options_are_refused(settings, expected):
    """Where they are made, or where they are given one by one."""
    with pytest.raises(ValueError) as made:
        RetryStrategyOptions(**settings)
    with pytest.raises(ValueError) as resolved:
        await RetryStrategyResolver().resolve_retry_strategy(
            retry_strategy=None, **settings
        )

    assert [expected] * 2 == [str(made.value), str(resolved.value)]


async def test_legacy_is_warned_about_once():
    """Where it is written, not where a strategy is made of it."""
    resolver = RetryStrategyResolver()
    with pytest.warns(RuntimeWarning, match="^retry_mode: .*legacy") as made:
        options = RetryStrategyOptions(retry_mode="legacy")
    with pytest.warns(RuntimeWarning, match="^retry_mode: .*legacy") as resolved:
        strategy = await resolver.resolve_retry_strategy(
            retry_strategy=None, retry_mode="legacy"
        )

    assert strategy is await resolver.resolve_retry_strategy(retry_strategy=options)
    assert [__file__] == [warning.filename for warning in made]
    assert [__file__] == [warning.filename for warning in resolved]


@pytest.mark.usefixtures("eager_threads")
def test_threads_that_ask_at_once_get_the_same_strategy():
    """Two strategies in place of one would have two quotas."""
    resolver = RetryStrategyResolver()
    found = []

    def ask():
        for attempts in range(1, 20):
            options = RetryStrategyOptions(max_attempts=attempts)
            asked = resolver.resolve_retry_strategy(retry_strategy=options)
            found.append(asyncio.run(asked))

    in_threads(ask, 4)

    assert 19 == len({id(strategy) for strategy in found})


def test_copy_is_the_resolver_itself():
    """Settings are copied, and go on sharing its strategies."""
    resolver = RetryStrategyResolver()

    assert resolver is copy.deepcopy({"resolver": resolver})["resolver"]
