"""Bad arguments are refused where a thing is made or asked, and nothing changes."""

import asyncio
import math
import time

import pytest
from chains import bad_argument

from aioretry_smithy import Backoff
from aioretry_smithy.smithy import (
    AdaptiveRetryStrategy,
    ClientRateLimiter,
    RetryProfile,
    SimpleRetryStrategy,
    StandardRetryQuota,
    StandardRetryStrategy,
    from_backoff,
    sync,
)
from aioretry_smithy.smithy import ExponentialRetryBackoffStrategy as Exponential
from aioretry_smithy.smithy.interfaces import ask_for_delay

BACKOFF = "an object with compute_next_backoff_delay(); see from_backoff()"
JITTER = "an ExponentialBackoffJitterType"
SECONDS = "finite and >= 0"
ADDED = "finite and >= 0, math.inf, or None"
SLEEP, CLOCK = "a plain function of seconds", "a callable that returns seconds"
ATTEMPTS, COUNT, COUNT_OR_NONE = "an int >= 1", "an int >= 0", "an int >= 0, or None"
PROFILE, QUOTA = "a RetryProfile", "a StandardRetryQuota, or None"
LIMITER = "a ClientRateLimiter, or None"
LIMITER_CLASS = f"{LIMITER}; call it: ClientRateLimiter()"

NO_NUMBERS = [math.nan, math.inf, True, "1", None]
NO_COUNTS = [-1, 1.0, True, "1", None]
NOW = from_backoff(Backoff.fixed(0))
Standard, Adaptive = StandardRetryStrategy, AdaptiveRetryStrategy
MODES = (
    SimpleRetryStrategy,
    Standard,
    Adaptive,
    sync.SimpleRetryStrategy,
    sync.StandardRetryStrategy,
    sync.AdaptiveRetryStrategy,
)


def limiter_of(clock):
    """Use a rate limiter with a clock that says something else."""
    ClientRateLimiter(clock=lambda: clock).update(throttled=True)


def expect_wait(after):
    ClientRateLimiter().expected_wait(after=after)


def ask(compute_next_backoff_delay):
    """Ask a backoff strategy that always says the same."""

    class Returning:
        def compute_next_backoff_delay(self, retry_attempt):
            return compute_next_backoff_delay

    ask_for_delay(Returning(), 1)


def fail_fast(fail_fast):
    AdaptiveRetryStrategy(fail_fast=fail_fast, long_polling=True)


def clock_beside_limiter(clock):
    sync.AdaptiveRetryStrategy(clock=clock, rate_limiter=ClientRateLimiter())


REFUSED = [
    *((mode, "max_attempts", ATTEMPTS, [0, *NO_COUNTS[:-1]]) for mode in MODES),
    *((mode, "backoff_strategy", BACKOFF, [2.0, type(NOW)]) for mode in MODES),
    (SimpleRetryStrategy, "max_attempts", ATTEMPTS, [None]),
    (Standard, "profile", PROFILE, ["V2_1"]),
    (Standard, "retry_quota", QUOTA, [500]),
    (Standard, "long_polling", "True or False", [1]),
    (Standard, "throttling_backoff_strategy", BACKOFF, [Backoff.fixed(1), type(NOW)]),
    (Adaptive, "rate_limiter", LIMITER, [5]),
    (Adaptive, "rate_limiter", LIMITER_CLASS, [ClientRateLimiter]),
    (Adaptive, "fail_fast", "True or False", [1, None]),
    (fail_fast, "fail_fast", "False with long_polling=True", [True]),
    (sync.StandardRetryStrategy, "sleep", SLEEP, [1.0]),
    (sync.AdaptiveRetryStrategy, "sleep", SLEEP, [None, asyncio.sleep]),
    (sync.AdaptiveRetryStrategy, "clock", CLOCK, [1.0]),
    (clock_beside_limiter, "clock", "None with a rate_limiter", [time.monotonic]),
    (ClientRateLimiter, "clock", CLOCK, [5]),
    (limiter_of, "clock", "returns a finite number", [-math.inf, *NO_NUMBERS]),
    (ClientRateLimiter().try_acquire, "amount", "finite and > 0", [0, *NO_NUMBERS]),
    (expect_wait, "after", SECONDS, [-1, *NO_NUMBERS]),
    (Exponential, "backoff_scale_value", SECONDS, [-1, *NO_NUMBERS]),
    (Exponential, "max_backoff", SECONDS, [-1, *NO_NUMBERS]),
    (Exponential, "jitter_type", JITTER, [1, "FULL"]),
    (Exponential, "random", "a callable that returns [0, 1)", [0.5]),
    (Exponential().compute_next_backoff_delay, "retry_attempt", COUNT, NO_COUNTS),
    (NOW.compute_next_backoff_delay, "retry_attempt", COUNT, NO_COUNTS),
    (ask, "compute_next_backoff_delay", f"seconds, {SECONDS}", [-1, *NO_NUMBERS]),
    (StandardRetryQuota, "initial_capacity", COUNT, NO_COUNTS),
    (StandardRetryQuota, "profile", PROFILE, ["", "V2_1"]),
    *(
        (RetryProfile, name, COUNT, NO_COUNTS)
        for name in ("retry_cost", "timeout_cost", "throttling_cost")
    ),
    (RetryProfile, "max_attempts", ATTEMPTS, [0, *NO_COUNTS]),
    (RetryProfile, "no_retry_increment", COUNT, NO_COUNTS),
    (RetryProfile, "success_refund", COUNT_OR_NONE, NO_COUNTS[:-1]),
    (RetryProfile, "backoff_scale_value", SECONDS, [-1, *NO_NUMBERS]),
    (RetryProfile, "throttling_backoff_scale_value", SECONDS, [-1, *NO_NUMBERS]),
    (RetryProfile, "max_backoff", SECONDS, [-1, *NO_NUMBERS]),
    (RetryProfile, "max_added_delay", ADDED, [-1, -math.inf, math.nan, False]),
]
"""What is called, its argument, what that is to be, and values that are not."""


@pytest.mark.parametrize(
    ("call", "name", "value", "expected"),
    [
        (call, name, value, expected)
        for call, name, expected, values in REFUSED
        for value in values
    ],
)
def test_bad_argument_is_refused(call, name, value, expected):
    """The error names it, where it is given."""
    with bad_argument(name, value, expected):
        call(**{name: value})


@pytest.mark.parametrize("amount", [-1, 1.0, None, True])
def test_bad_refund_leaves_the_quota_as_it_was(amount):
    """A refund cannot take something out."""
    quota = StandardRetryQuota(20)
    quota.acquire(error=ConnectionResetError())
    with bad_argument("release_amount", amount, "an int >= 0"):
        quota.release(release_amount=amount)

    assert 6 == quota.available_capacity
