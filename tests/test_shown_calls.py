"""What is made from plain arguments is shown as the call that makes it."""

import pytest

import aioretry_smithy
from aioretry_smithy import smithy

PERCENTILE = (
    "HedgingDelay.percentile(0.95, minimum_samples=100, window=60.0, floor=0.001)"
)
FIXED = "Backoff.fixed(3.0)"
WAIT = "Backoff.fixed(0.5)"
VALUES = [
    "Backoff.fixed(0.0)",
    "Backoff.random(1.0, 2.0)",
    "Backoff.exponential(0.2, 10.0, 2.0)",
    "Backoff.fibonacci(0.2, 10.0)",
    f"{FIXED}.with_jitter(0.2)",
    f"{FIXED}.with_jitter(0.0)",
    f"{FIXED}.with_jitter(-0.1, 0.3)",
    f"{FIXED}.with_jitter(-1.0, 0.0)",
    f"{FIXED}.with_max_attempts(5)",
    # Nothing is left out of an endpoint (case 13).
    "Endpoint('http://a.example')",
    "Endpoint('http://a.example/v1/')",
    "Endpoint('http://a.example:8080', address='10.0.0.3', weight=2.5)",
    "Endpoint('http://[2001:db8::1]', weight=0.0)",
    PERCENTILE,
    "RetryAction.forbid()",
    "RetryAction.retry(ErrorKind.TRANSIENT)",
    "RetryAction.retry(ErrorKind.TIMEOUT, retry_after=0.0)",
    f"RetryDecision.retry({WAIT})",
    "RetryDecision.no_retry()",
    "RetryDecision.next()",
    f"RetryRuleWithContent(statuses=[503], backoff={WAIT}, max_content_length=64)",
    "RetryStrategy.never()",
    *(
        f"RetryStrategy.{name}({WAIT})"
        for name in ("failsafe", "on_server_error_status", "on_unprocessed")
    ),
    f"RetryStrategy.failsafe({WAIT}) | RetryStrategy.on_unprocessed({FIXED})",
]
"""Those that are equal when they are made twice."""

LEARNING = "initial=20, minimum=1, maximum=200"
TOKEN_BASED = "RetryLimiter.token_based(10, 2.5, token_ratio=1.0)"
BUDGET = "RetryBudget('orders', deposit=0.1, capacity=10.0, brake_after=None)"
GRADIENT = (
    f"ConcurrencyLimit.gradient({LEARNING}, tolerance=1.5, smoothing=0.2, queue=4,"
    " window=600)"
)
RATE = "failure_rate_threshold=0.5, minimum_request_threshold=10"
ROW = "consecutive_failures=3, success_threshold=2"
TRIALS = "trial_request_interval=3.0"
WINDOWS = "counter_sliding_window=20.0, counter_update_interval=1.0"
SHARED = [
    f"CircuitBreaker('orders', {RATE}, {TRIALS}, circuit_open_window=30.0, {WINDOWS})",
    f"CircuitBreaker('a', {RATE}, {ROW}, {TRIALS}, circuit_open_window=9.0, {WINDOWS})",
    f"ConcurrencyLimit.aimd({LEARNING}, backoff_ratio=0.9, slow_after=1.0)",
    "ConcurrencyLimit.fixed(3, name='orders')",
    GRADIENT,
    "LogFormatter.text()",
    "LogFormatter.line()",
    "LogFormatter.tree()",
    "LogFormatter.json()",
    "LogFormatter.json(omit_empty=True)",
    "LogFormatter.json(nested=True, omit_empty=True)",
    "RateLimit(10, 60, burst=5)",
    "RateLimit.from_headers()",
    BUDGET,
    "RetryLimiter.concurrency(7)",
    TOKEN_BASED,
    "StandardRetryQuota(20, profile=RetryProfile.V2_0)",
]

USUAL = {
    "Backoff.without_delay()": "Backoff.fixed(0.0)",
    "Backoff.fixed(3)": FIXED,
    "Backoff.fixed(3).with_jitter(0)": f"{FIXED}.with_jitter(0.0)",
    "Backoff.exponential()": "Backoff.exponential(0.2, 10.0, 2.0)",
    "Backoff.fibonacci()": "Backoff.fibonacci(0.2, 10.0)",
    "Backoff.fixed(3).with_full_jitter()": f"{FIXED}.with_jitter(-1.0, 0.0)",
    "ConcurrencyLimit.gradient()": GRADIENT,
    "HedgingDelay.percentile()": PERCENTILE,
    "RateLimit(10)": "RateLimit(10, 1.0)",
    "RetryBudget('orders', brake_after=None)": BUDGET,
    "RetryLimiter.token_based(10, 2.5)": TOKEN_BASED,
}
"""Calls that leave arguments out, and what is shown then."""


def made(text):
    """Make what a text says."""
    return eval(text, {**vars(smithy), **vars(aioretry_smithy)})


@pytest.mark.parametrize("text", [*VALUES, *SHARED])
def test_text_is_the_call_that_makes_it(text):
    """What a chain describes can be pasted back."""
    assert text == repr(made(text))


@pytest.mark.parametrize("text", VALUES)
def test_values_that_are_made_twice_are_equal(text):
    """By what was given."""
    assert made(text) == made(text)


@pytest.mark.parametrize(("call", "text"), USUAL.items())
def test_what_was_left_out_is_shown(call, text):
    """With numbers as they are used."""
    assert text == repr(made(call))
