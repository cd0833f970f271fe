"""The page of defaults says what the three chains do."""

from __future__ import annotations

import csv
import re
from http import HTTPMethod, HTTPStatus
from pathlib import Path

import aiohttp
import pytest
from chains import URL

from aioretry_smithy import (
    RequestLog,
    RetryConfig,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    smithy,
)
from aioretry_smithy.testing import ScriptedTransport

pytestmark = pytest.mark.virtual_time

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "defaults.csv"
METHODS = [*(method for method in HTTPMethod if method != "CONNECT"), "QUERY"]
CONFIGS = {
    "``RetryingClient``": RetryConfig(RetryStrategy.failsafe()),
    "``standard()``": RetryConfig.standard(),
    "Smithy": RetryConfig(smithy.StandardRetryStrategy()),
}


def builder_of(column, *answers):
    """Begin the chain of a column with a script in place of the network."""
    transport = ScriptedTransport(answers)
    if column == "``standard()``":
        return SessionBuilder.standard(inside=[transport])
    strategy = {
        "``RetryingClient``": RetryStrategy.failsafe,
        "Smithy": smithy.StandardRetryStrategy,
    }[column]
    retrying = RetryingClient.new_decorator(strategy())
    return SessionBuilder().decorator(transport).decorator(retrying)


async def log_of(column, *answers, method="GET"):
    """Make one call through the chain of a column and return its log."""
    async with builder_of(column, *answers).build() as session:
        try:
            async with session.request(method, URL) as response:
                return RequestLog.of(response)
        except (OSError, aiohttp.ClientError) as error:
            return RequestLog.of(error)


async def is_retried(column, outcome, method="GET"):
    log = await log_of(column, outcome, 200, method=method)
    return log.total_attempts == 2


async def attempts(column):
    log = await log_of(column, *[503] * 20)
    return f"{log.total_attempts}"


async def attempt_timeout(column):
    seconds = CONFIGS[column].attempt_timeout
    return "none" if seconds is None else f"{seconds:g} s"


async def deadline(column):
    async with builder_of(column).build() as session:
        return f"{session.timeout.total:g} s"


def backoffs_of(column):
    """Return shortest and longest first wait, and the longest of all."""
    strategy = CONFIGS[column].strategy
    if isinstance(strategy, smithy.StandardRetryStrategy):
        profile = strategy.profile
        scales = profile.backoff_scale_value, profile.throttling_backoff_scale_value
        return [(0.0, scale, profile.max_backoff) for scale in scales]
    numbers = [float(number) for number in re.findall(r"-?\d+\.\d+", repr(strategy))]
    first, limit, multiplier, *jitter = numbers
    low, high = (-jitter[0], jitter[0]) if len(jitter) == 1 else jitter
    assert multiplier == 2
    return [(first * (1 + low), first * (1 + high), limit * (1 + high))] * 2


async def first_wait(column):
    low, high, _ = backoffs_of(column)[0]
    return f"{low:g} to {high:g} s"


async def first_wait_after_429(column):
    low, high, _ = backoffs_of(column)[1]
    return f"{low:g} to {high:g} s"


async def longest_wait(column):
    return f"{backoffs_of(column)[0][2]:g} s"


async def hint(column):
    config = CONFIGS[column]
    if isinstance(config.strategy, smithy.StandardRetryStrategy):
        return f"{config.strategy.profile.max_added_delay:g} s more than the wait"
    return f"{config.max_retry_after:g} s, else it stops"


async def limit_of_all(column):
    config = CONFIGS[column]
    if isinstance(config.strategy, smithy.StandardRetryStrategy):
        quota = config.strategy.quota_for()
        return (
            f"per server {quota.available_capacity} tokens; a retry costs "
            f"{quota.RETRY_COST}, after throttling {quota.THROTTLING_RETRY_COST}"
        )
    if config.limiter is None:
        return "none"
    numbers = re.findall(r"[\d.]+(?=[,)])", repr(config.limiter))
    deposit, capacity, brake, unserved = numbers
    return (
        f"per host {float(capacity):g} tokens; a retry costs 1, or {unserved} where "
        f"the server did no work, a success adds {deposit}; none after {brake} "
        f"failures in a row, of which an unserved one counts {unserved}"
    )


async def statuses(column):
    # Of the others each strategy thinks alike.
    told_apart = {400, 401, 403, 404, 405, 408, 409, 410, 422, 425, 429, 451}
    errors = [each for each in HTTPStatus if each >= 500 or each in told_apart]
    retried = [status for status in errors if await is_retried(column, status.value)]
    server_errors = [status for status in errors if status >= 500]
    words = [f"{status.value}" for status in retried if status < 500]
    if {*server_errors} <= {*retried}:
        return ", ".join([*words, "5xx"])
    return ", ".join(f"{status.value}" for status in retried)


async def methods(column, outcome):
    refused = [each for each in METHODS if not await is_retried(column, outcome, each)]
    return f"all but {' and '.join(sorted(refused))}" if refused else "all"


async def methods_after_timeout(column):
    return await methods(column, TimeoutError())


async def methods_after_503(column):
    return await methods(column, 503)


async def circuit_breaker(column):
    described = builder_of(column).describe()
    if "CircuitBreakerClient" not in described:
        return "none"
    settings = dict(re.findall(r"(\w+)=([\d.]+)", described))
    windows = re.search(r"open_window=Backoff\.exponential\((.*?)\)", described)
    assert windows is not None
    first, longest, growth = map(float, windows[1].split(", "))
    ignores_throttling = "count_throttling=False" in described
    ignored = "; a 429 or 503 with ``Retry-After`` is not counted"
    return (
        f"per host; opens after {settings['consecutive_failures']} failures in a row, "
        f"for {first:g} s, then {growth:g} times as long each time, up to "
        f"{longest:g} s; meanwhile a call waits up to "
        f"{float(settings['wait_for_ready']):g} s in all"
        f"{ignored if ignores_throttling else ''}"
    )


async def log_lines(column):
    return "yes" if "LoggingClient" in builder_of(column).describe() else "no"


async def environment(column):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIORETRY_SMITHY_DEFAULT_MAX_TOTAL_ATTEMPTS", "2")
        return "read" if await attempts(column) == "2" else "ignored"


async def no_retries(column):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIORETRY_SMITHY_NO_RETRIES", "1")
        return "read" if await attempts(column) == "1" else "ignored"


ROWS = {
    "attempts of a call, the first included": attempts,
    "timeout of each attempt": attempt_timeout,
    "deadline of a call": deadline,
    "wait before the second attempt": first_wait,
    "the same after a 429": first_wait_after_429,
    "longest wait; each may be twice the one before": longest_wait,
    "longest wait that a server may ask for": hint,
    "limit on the retries of all calls": limit_of_all,
    "statuses that are retried, of a GET": statuses,
    "methods that are retried after a timeout": methods_after_timeout,
    "methods that are retried after a 503": methods_after_503,
    "circuit breaker": circuit_breaker,
    "a pair of log lines per call": log_lines,
    "``AIORETRY_SMITHY_DEFAULT_MAX_TOTAL_ATTEMPTS``": environment,
    "``AIORETRY_SMITHY_NO_RETRIES``": no_retries,
}


def table():
    """Return the cells of the page by row and column."""
    with PAGE.open(encoding="utf-8", newline="") as file:
        return {row.pop(""): row for row in csv.DictReader(file)}


@pytest.mark.parametrize("row", ROWS)
async def test_row_says_what_the_chains_do(row):
    """Each cell of a row is what its chain does without settings."""
    cells = {column: await ROWS[row](column) for column in CONFIGS}

    assert table()[row] == cells


def test_every_row_is_checked():
    """The table has no row that no test computes."""
    assert [*table()] == [*ROWS]
