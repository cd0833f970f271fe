"""Retry modes by name, and from the environment."""

import math

import pytest

from aioretry_smithy.smithy.adaptive import AdaptiveRetryStrategy
from aioretry_smithy.smithy.mode import RetryMode, strategy_from_env
from aioretry_smithy.smithy.simple import SimpleRetryStrategy
from aioretry_smithy.smithy.standard import StandardRetryStrategy

NAMES = "simple, standard or adaptive"
LEGACY = f"{NAMES}; legacy is not supported"


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


@pytest.mark.parametrize("text", ["", "stand ard", "Default", None, 1, b"x"])
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


@pytest.mark.parametrize("mode", ["off", "2"])
def test_unknown_mode_in_the_environment_is_refused(mode):
    """The error names the variable, for whoever has set it elsewhere."""
    with pytest.raises(ValueError) as caught:
        strategy_from_env({"AWS_RETRY_MODE": mode})

    assert f"AWS_RETRY_MODE: {mode!r} (expected: {NAMES})" == str(caught.value)


@pytest.mark.parametrize("mode", ["legacy", " Legacy "])
def test_legacy_mode_is_not_supported(mode):
    """Whoever has it in his settings learns that it is no slip of the pen."""
    for name, read in (
        ("text", RetryMode.of),
        ("AWS_RETRY_MODE", lambda text: strategy_from_env({"AWS_RETRY_MODE": text})),
    ):
        with pytest.raises(ValueError) as caught:
            read(mode)

        shown = mode if name == "text" else mode.strip()
        assert f"{name}: {shown!r} (expected: {LEGACY})" == str(caught.value)


@pytest.mark.parametrize("name", ["AWS_RETRY_MODE", "AWS_MAX_ATTEMPTS"])
@pytest.mark.parametrize("value", [None, 3, b"3", RetryMode])
def test_variables_are_text(name, value):
    """A mapping that was made in a program may hold anything."""
    with pytest.raises(ValueError) as caught:
        strategy_from_env({name: value})

    assert f"{name}: {value!r} (expected: a str)" == str(caught.value)


@pytest.mark.parametrize("environ", ["AWS_RETRY_MODE=simple", [], 0, dict])
def test_environment_is_a_mapping(environ):
    """What holds no variables is refused, also what is empty."""
    with pytest.raises(ValueError) as caught:
        strategy_from_env(environ)

    assert f"environ: {environ!r} (expected: a mapping, or None)" == str(caught.value)


@pytest.mark.parametrize(
    "attempts", ["0", "-1", "+3", "3.0", "three", "\u0663", "1_000", "9" * 10]
)
def test_unreadable_attempts_in_the_environment_are_refused(attempts):
    """The error names the variable; nothing is guessed."""
    with pytest.raises(ValueError) as caught:
        strategy_from_env({"AWS_MAX_ATTEMPTS": attempts})

    expected = f"AWS_MAX_ATTEMPTS: {attempts!r} (expected: a positive integer)"
    assert expected == str(caught.value)
