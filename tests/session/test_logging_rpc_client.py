"""The two lines about the call of a function."""

from __future__ import annotations

import json
import logging
from contextlib import suppress

import pytest
from chains import NOW, without_id

from aioretry_smithy import (
    LogFormatter,
    LoggingRpcClient,
    RetryingRpcClient,
    RetryRule,
    rpc,
)

RETRYING = RetryingRpcClient.new_decorator(
    RetryRule(exceptions=[KeyError], backoff=NOW), 2
)


async def lines_of(caplog, outcome, *decorators):
    """Return the levels and the lines of one call."""

    @rpc(*decorators, name="reports.fetch")
    async def call(secret):
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    with caplog.at_level(logging.DEBUG, "aioretry_smithy"), suppress(KeyError):
        await call("argument")
    return [(record.levelname, record.message) for record in caplog.records]


async def test_success_is_told_with_the_name(caplog):
    """Neither the arguments nor what was returned are in the lines."""
    lines = await lines_of(caplog, "result", LoggingRpcClient.new_decorator())
    (asked, request), (answered, response) = lines

    assert ("DEBUG", "DEBUG") == (asked, answered)
    assert "name=reports.fetch}" in request
    assert without_id(request).startswith("Request: {startTime=")
    assert (
        "Response: {duration=0.000s, totalDuration=0.000s, name=reports.fetch}"
    ) == without_id(response)


async def test_failure_is_told_with_its_cause(caplog):
    """At the level of failures; outside of the retrying client once a call."""
    decorators = [RETRYING, LoggingRpcClient.new_decorator()]
    lines = await lines_of(caplog, KeyError("gone"), *decorators)

    assert ["DEBUG", "WARNING"] == [level for level, _ in lines]
    assert lines[-1][1].endswith(
        "cause=KeyError: 'gone'}, {totalAttempts=2}, stopped: max_total_attempts"
    )


async def test_inside_of_the_retrying_client_each_attempt_is_told(caplog):
    """With its number."""
    decorators = [LoggingRpcClient.new_decorator(), RETRYING]
    lines = await lines_of(caplog, KeyError("gone"), *decorators)

    assert 4 == len(lines)
    assert "name=reports.fetch, currentAttempt=2}" in lines[2][1]


@pytest.mark.parametrize(("nested", "count"), [(False, 2), (True, 1)])
async def test_lines_may_be_json(caplog, nested, count):
    """With null where a function has nothing."""
    formatter = LogFormatter.json(nested=nested)
    decorator = LoggingRpcClient.new_decorator(formatter=formatter)
    lines = await lines_of(caplog, 7, decorator)
    first = json.loads(lines[0][1])

    assert count == len(lines)
    assert ("reports.fetch", None, None) == (
        first["name"],
        first["request_url"],
        first["request_method"],
    )
