"""Retry modes by name, and the strategies that they and options stand for."""

import asyncio
import math

import pytest
from chains import bad_argument, in_threads, raises_exactly

from aioretry_smithy.smithy import (
    AdaptiveRetryStrategy,
    RetryMode,
    RetryStrategyOptions,
    RetryStrategyResolver,
    SimpleRetryStrategy,
    StandardRetryStrategy,
    new_strategy,
)

NAMES = "simple, standard or adaptive"


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        (RetryMode.SIMPLE, "simple"),
        (RetryMode.STANDARD, "standard"),
        (RetryMode.ADAPTIVE, "adaptive"),
        (RetryMode.ADAPTIVE, " Adaptive "),
        (RetryMode.STANDARD, "\tSTANDARD\n"),
        (RetryMode.SIMPLE, RetryMode.SIMPLE),
    ],
)
def test_mode_is_read_from_text(mode, text):
    """Blanks around the name and capital letters make no difference."""
    assert mode is RetryMode.of(text)


@pytest.mark.parametrize(
    "mode", ["", "stand ard", "Default", "off", None, 1, 3, b"x", StandardRetryStrategy]
)
@pytest.mark.parametrize(
    ("name", "read"), [("text", RetryMode.of), ("mode", new_strategy)]
)
def test_unknown_mode_is_refused(name, read, mode):
    """The error says which modes there are."""
    with bad_argument(name, mode, NAMES):
        read(mode)


@pytest.mark.parametrize(
    ("mode", "kind", "usual"),
    [
        (RetryMode.SIMPLE, SimpleRetryStrategy, 5),
        (RetryMode.STANDARD, StandardRetryStrategy, 3),
        (RetryMode.ADAPTIVE, AdaptiveRetryStrategy, 3),
    ],
)
def test_mode_makes_its_strategy(mode, kind, usual):
    """A new one each time, with the attempts that are wanted or usual."""
    strategy, other = mode.new_strategy(), mode.new_strategy(max_attempts=7)

    assert kind is type(strategy) is type(other)
    assert (usual, 7) == (strategy.max_attempts, other.max_attempts)


@pytest.mark.parametrize("mode", ["legacy", " Legacy ", "LEGACY"])
@pytest.mark.parametrize(
    ("name", "read"), [("text", RetryMode.of), ("mode", new_strategy)]
)
def test_legacy_means_standard_and_is_warned_about(name, read, mode):
    """A warning says that the mode is another one here."""
    expected = f"{name}: the mode 'legacy' is not supported, 'standard' is used instead"
    with pytest.warns(RuntimeWarning) as caught:
        made = read(mode)

    assert [expected] == [str(warning.message) for warning in caught]
    assert __file__ == caught[0].filename
    assert made is RetryMode.STANDARD or type(made) is StandardRetryStrategy


@pytest.mark.parametrize(
    ("mode", "settings", "scale", "throttling", "longest"),
    [
        *(
            (mode, *row)
            for mode in ("standard", "adaptive")
            for row in (
                ({}, 0.05, 1.0, 20.0),
                ({"initial_backoff": 0.2}, 0.2, 1.0, 20.0),
                ({"initial_backoff": 3}, 3, 3, 20.0),
                ({"initial_backoff": 0}, 0, 1.0, 20.0),
                ({"max_backoff": 2.5}, 0.05, 1.0, 2.5),
                ({"max_backoff": 0}, 0.05, 1.0, 0),
                ({"initial_backoff": 30.0, "max_backoff": 30.0}, 30.0, 30.0, 30.0),
            )
        ),
        ("simple", {}, 0.025, None, 20.0),
        ("simple", {"initial_backoff": 0.2}, 0.2, None, 20.0),
        ("simple", {"initial_backoff": 1.0, "max_backoff": 2.5}, 1.0, None, 2.5),
    ],
)
def test_backoff_can_be_configured(mode, settings, scale, throttling, longest):
    """A server that throttles is never asked again sooner than one that fails."""
    strategy = new_strategy(mode, **settings)
    usual = strategy.backoff_strategy
    slow = getattr(strategy, "throttling_backoff_strategy", None)

    assert (scale, longest) == (usual.backoff_scale_value, usual.max_backoff)
    assert (throttling is None) == (slow is None)
    if slow is not None:
        assert (throttling, longest) == (slow.backoff_scale_value, slow.max_backoff)


@pytest.mark.parametrize("mode", RetryMode)
@pytest.mark.parametrize("name", ["initial_backoff", "max_backoff"])
@pytest.mark.parametrize("seconds", [-1, math.inf, math.nan, True, "1", 10**400])
def test_bad_seconds_are_refused(mode, name, seconds):
    """The error names the argument as it was given."""
    with bad_argument(name, seconds, "finite and >= 0, or None"):
        new_strategy(mode, **{name: seconds})


@pytest.mark.parametrize("mode", RetryMode)
@pytest.mark.parametrize(
    ("initial", "longest", "shown"), [(2.0, 1.5, "1.5"), (20.5, None, "20.0")]
)
def test_initial_backoff_fits_the_limit(mode, initial, longest, shown):
    """A first delay that is cut every time is a slip."""
    with raises_exactly(
        f"initial_backoff: {initial} (expected: <= max_backoff, {shown})"
    ):
        new_strategy(mode, initial_backoff=initial, max_backoff=longest)


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
