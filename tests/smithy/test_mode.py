"""Retry modes by name, and from the environment."""

import math

import pytest

from aioretry_smithy.smithy.adaptive import AdaptiveRetryStrategy
from aioretry_smithy.smithy.mode import RetryMode, strategy_from_env
from aioretry_smithy.smithy.simple import SimpleRetryStrategy
from aioretry_smithy.smithy.standard import StandardRetryStrategy

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


@pytest.mark.parametrize("text", ["", "legacy", "stand ard", "Default", None, 1, b"x"])
def test_unknown_mode_is_refused(text):
    """The error says which modes there are."""
    with pytest.raises(ValueError) as caught:
        RetryMode.of(text)

    assert f"text: {text!r} (expected: {NAMES})" == str(caught.value)


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
    with pytest.raises(ValueError) as caught:
        mode.new_strategy(max_attempts=max_attempts)

    expected = f"max_attempts: {max_attempts!r} (expected: an int >= 1)"
    assert expected == str(caught.value)


@pytest.mark.parametrize(
    ("environ", "kind", "max_attempts"),
    [
        ({}, StandardRetryStrategy, 3),
        ({"AWS_RETRY_MODE": "", "AWS_MAX_ATTEMPTS": ""}, StandardRetryStrategy, 3),
        ({"AWS_RETRY_MODE": " ", "AWS_MAX_ATTEMPTS": " "}, StandardRetryStrategy, 3),
        ({"AWS_RETRY_MODE": "Adaptive"}, AdaptiveRetryStrategy, 3),
        ({"AWS_RETRY_MODE": " simple "}, SimpleRetryStrategy, 5),
        ({"AWS_MAX_ATTEMPTS": "1"}, StandardRetryStrategy, 1),
        (
            {"AWS_RETRY_MODE": "adaptive", "AWS_MAX_ATTEMPTS": " 10 "},
            AdaptiveRetryStrategy,
            10,
        ),
    ],
)
def test_environment_says_which_strategy(environ, kind, max_attempts):
    """A variable that is empty is as good as none."""
    strategy = strategy_from_env(environ)

    assert kind is type(strategy)
    assert max_attempts == strategy.max_attempts


def test_environment_is_that_of_the_process(monkeypatch):
    """Without an argument the variables of the process are read, each time anew."""
    monkeypatch.delenv("AWS_MAX_ATTEMPTS", raising=False)
    monkeypatch.setenv("AWS_RETRY_MODE", "simple")
    before = strategy_from_env()
    monkeypatch.setenv("AWS_RETRY_MODE", "standard")
    after = strategy_from_env()

    assert SimpleRetryStrategy is type(before)
    assert StandardRetryStrategy is type(after)


@pytest.mark.parametrize("mode", ["legacy", "off", "2"])
def test_unknown_mode_in_the_environment_is_refused(mode):
    """The error names the variable, for whoever has set it elsewhere."""
    with pytest.raises(ValueError) as caught:
        strategy_from_env({"AWS_RETRY_MODE": mode})

    assert f"AWS_RETRY_MODE: {mode!r} (expected: {NAMES})" == str(caught.value)


@pytest.mark.parametrize(
    "attempts", ["0", "-1", "+3", "3.0", "three", "\u0663", "1_000", "9" * 10]
)
def test_unreadable_attempts_in_the_environment_are_refused(attempts):
    """The error names the variable; nothing is guessed."""
    with pytest.raises(ValueError) as caught:
        strategy_from_env({"AWS_MAX_ATTEMPTS": attempts})

    expected = f"AWS_MAX_ATTEMPTS: {attempts!r} (expected: a positive integer)"
    assert expected == str(caught.value)
