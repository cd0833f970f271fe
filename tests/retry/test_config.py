"""The settings of a retrying client, and their errors."""

from __future__ import annotations

import dataclasses
import math

import pytest
from chains import bad_argument

from aioretry_smithy import (
    Backoff,
    RetryBudget,
    RetryConfig,
    RetryStrategy,
    RetryStrategyWithContent,
    smithy,
)

NEVER = RetryStrategy.never()


class Looking(RetryStrategyWithContent):
    """Needs the body."""

    def __init__(self, max_content_length: object = 100) -> None:
        self.max_content_length = max_content_length

    def should_retry(self, ctx, cause, content) -> Backoff | None:
        return None


VARIABLE = "AIORETRY_SMITHY_DEFAULT_MAX_TOTAL_ATTEMPTS"


def test_defaults(monkeypatch):
    """They are those of the documentation."""
    monkeypatch.delenv(VARIABLE, raising=False)
    config = RetryConfig(NEVER)

    assert {
        "strategy": NEVER,
        "max_total_attempts": 10,
        "attempt_timeout": None,
        "limiter": None,
        "listeners": (),
        "use_retry_after": True,
        "max_retry_after": 60.0,
        "stop_after_delay": None,
        "buffer_response": False,
        "retry_count_header": "armeria-retry-count",
        "classifiers": smithy.DEFAULT_CLASSIFIERS,
        "raise_retry_error": False,
        "token_scope": None,
    } == {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(config)
        if field.init
    }


def test_attempts_and_their_timeout_may_be_given_by_position():
    """As on Armeria's page; the rest has to be named."""
    named = RetryConfig(NEVER, max_total_attempts=5, attempt_timeout=3.0)

    assert named == RetryConfig(NEVER, 5, 3.0)
    with pytest.raises(TypeError, match="positional"):
        RetryConfig(NEVER, 5, 3.0, None)


def test_config_is_frozen():
    """Policy does not change under the calls that use it."""
    config = RetryConfig(NEVER)

    with pytest.raises(dataclasses.FrozenInstanceError):
        config.max_total_attempts = 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3", 3), ("1", 1), ("", 10), ("007", 7), ("999999999", 999999999)],
)
def test_environment_variable_sets_the_default(monkeypatch, text, expected):
    """It is read when the configuration is made; empty is unset."""
    monkeypatch.setenv(VARIABLE, text)

    assert expected == RetryConfig(NEVER).max_total_attempts


@pytest.mark.parametrize(
    "text", ["0", "-1", "ten", "1.5", " 3", "³", "1" * 10, "9" * 400]
)
def test_environment_variable_must_be_a_positive_integer(monkeypatch, text):
    """A typo is told, not ignored."""
    monkeypatch.setenv(VARIABLE, text)

    with bad_argument(VARIABLE, text, "a positive integer"):
        RetryConfig(NEVER)


def test_limits_themselves_are_in_range():
    """A short timeout is one, and a server may be allowed no wait at all."""
    config = RetryConfig(NEVER, attempt_timeout=0.001, max_retry_after=0)

    assert (0.001, 0) == (config.attempt_timeout, config.max_retry_after)


def test_argument_wins_over_the_environment(monkeypatch):
    """Then the variable is not even read."""
    monkeypatch.setenv(VARIABLE, "nonsense")

    assert 3 == RetryConfig(NEVER, max_total_attempts=3).max_total_attempts


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("max_total_attempts", 0, "an int >= 1"),
        ("max_total_attempts", 2.0, "an int >= 1"),
        ("max_total_attempts", True, "an int >= 1"),
        ("max_total_attempts", None, "an int >= 1"),
        ("attempt_timeout", 0, "finite and > 0, or None"),
        ("attempt_timeout", math.nan, "finite and > 0, or None"),
        ("attempt_timeout", math.inf, "finite and > 0, or None"),
        ("attempt_timeout", "1", "finite and > 0, or None"),
        ("use_retry_after", "no", "True or False"),
        ("max_retry_after", -1, "finite and >= 0, or None"),
        ("max_retry_after", math.inf, "finite and >= 0, or None"),
        ("stop_after_delay", 0, "finite and > 0, or None"),
        ("buffer_response", 1, "True or False"),
        ("buffer_response", None, "True or False"),
        ("retry_count_header", "", "a header name, or None"),
        ("retry_count_header", "a b", "a header name, or None"),
        ("retry_count_header", "x\r\ny", "a header name, or None"),
        ("retry_count_header", "x\n", "a header name, or None"),
        ("retry_count_header", 7, "a header name, or None"),
    ],
)
def test_argument_out_of_range_is_told_at_once(name, value, expected):
    """In the one form that all of this library's errors have."""
    with bad_argument(name, value, expected):
        RetryConfig(NEVER, **{name: value})


def test_strategy_must_be_one():
    """A class in the place of its instance is a frequent slip."""
    kinds = "a RetryStrategy, a RetryStrategyWithContent or a Smithy strategy"
    with bad_argument(
        "strategy", RetryStrategy, f"{kinds}; call it: RetryStrategy.failsafe()"
    ):
        RetryConfig(RetryStrategy)


@pytest.mark.parametrize("length", [0, -1, True, 1.5, "1", None])
def test_strategy_looks_at_one_byte_at_least(length):
    """A strategy that needs no content is of the other kind."""
    with bad_argument("max_content_length", length, "an int >= 1"):
        RetryConfig(Looking(length))


def test_standard_settings_ignore_the_environment(monkeypatch):
    """They are chosen together."""
    monkeypatch.setenv(VARIABLE, "7")

    assert 6 == RetryConfig.standard().max_total_attempts


def test_standard_attempt_timeout_is_chosen_by_nobody_unless_given():
    """So a session with less time is no contradiction; equality does not ask."""
    usual = RetryConfig.standard()
    chosen = RetryConfig.standard(attempt_timeout=10.0, limiter=usual.limiter)

    assert usual.has_usual_attempt_timeout
    assert not chosen.has_usual_attempt_timeout
    assert not RetryConfig(RetryStrategy.never()).has_usual_attempt_timeout
    assert repr(usual) == repr(chosen)


def test_standard_settings_can_be_changed():
    """Each by its keyword, to None too; the others stay."""
    strategy = RetryStrategy.never()
    config = RetryConfig.standard(strategy=strategy, limiter=None, max_retry_after=5.0)
    expected = RetryConfig(
        strategy, max_total_attempts=6, attempt_timeout=10.0, max_retry_after=5.0
    )

    assert expected == config


def test_bad_change_of_the_standard_settings_is_told_at_once():
    """As where the settings are made one by one."""
    with pytest.raises(ValueError, match="max_total_attempts: 0 "):
        RetryConfig.standard(max_total_attempts=0)


def test_settings_that_never_retry():
    """By one attempt, and by a strategy that says so."""
    expected = RetryConfig(RetryStrategy.never(), max_total_attempts=1)

    assert expected == RetryConfig.no_retry()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("limiter", 0.1, "a RetryLimiter, or None"),
        ("limiter", RetryBudget, "a RetryLimiter, or None; call it: RetryBudget()"),
        ("classifiers", None, "functions of a failure and a verdict"),
        ("classifiers", 1, "functions of a failure and a verdict"),
        ("classifiers", ["by_status"], "functions of a failure and a verdict"),
    ],
)
def test_part_that_is_none_is_told_at_once(name, value, expected):
    """A class instead of an object of it is the likely slip."""
    with bad_argument(name, value, expected):
        RetryConfig(smithy.SimpleRetryStrategy(), **{name: value})
