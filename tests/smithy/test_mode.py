"""Retry modes by name, and the strategies that they stand for."""

import math
import warnings

import pytest
from chains import bad_argument, raises_exactly

from aioretry_smithy.smithy.limiters import RetryProfile
from aioretry_smithy.smithy.mode import RetryMode, new_strategy
from aioretry_smithy.smithy.strategies import (
    AdaptiveRetryStrategy,
    SimpleRetryStrategy,
    StandardRetryStrategy,
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


@pytest.mark.parametrize("mode", RetryMode)
@pytest.mark.parametrize("max_attempts", [0, -1, True, "3", math.nan])
def test_bad_max_attempts_are_refused(mode, max_attempts):
    """Each strategy checks its argument."""
    with bad_argument("max_attempts", max_attempts, "an int >= 1"):
        mode.new_strategy(max_attempts=max_attempts)


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


def test_legacy_is_warned_about_once_per_place():
    """A line that is run again says it once, another line says it again."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            RetryMode.of("legacy")
        RetryMode.of("legacy")

    assert 2 == len(caught)


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("simple", SimpleRetryStrategy),
        (" Standard ", StandardRetryStrategy),
        (RetryMode.ADAPTIVE, AdaptiveRetryStrategy),
    ],
)
def test_strategy_is_made_from_the_name_of_its_mode(mode, kind):
    """Or from the mode itself, with the attempts that are wanted."""
    strategy = new_strategy(mode, max_attempts=7)

    assert (kind, 7) == (type(strategy), strategy.max_attempts)


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


def test_strategy_without_settings_has_the_usual_profile():
    """So it describes itself shortly."""
    assert RetryProfile.V2_1 == new_strategy("standard").profile


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
