"""The idioms of tenacity and what stands in their place: what is alike, what is not."""

import asyncio
import itertools

import pytest

pytest.importorskip("tenacity")

import tenacity
from functions import GONE, Different, SameCalls
from tenacity import RetryError

from aioretry_smithy import Backoff, RequestLog, RetryingRpcClient, RetryRule, rpc

pytestmark = [pytest.mark.virtual_time, pytest.mark.usefixtures("_clock_of_the_loop")]


@pytest.mark.parametrize(
    ("name", "outcomes", "expected"),
    [
        ("fetch_three_times", [GONE, GONE, "a"], "a"),
        ("fetch_or_reraise", [GONE, GONE, GONE], ConnectionResetError),
        ("fetch_within_ten_seconds", [GONE, GONE, "a"], "a"),
        ("fetch_patiently", [GONE, GONE, "a"], "a"),
        ("fetch_connected", [GONE, GONE, "a"], "a"),
        ("fetch_connected", [GONE, ValueError()], ValueError),
        ("fetch_when_done", ["pending", "pending", "a"], "a"),
        ("fetch_when_done", [GONE], ConnectionResetError),
        ("fetch_loudly", [GONE, GONE, "a"], "a"),
        ("fetch_in_a_loop", [GONE, GONE, "a"], "a"),
        ("fetch_or_nothing", [GONE, GONE, GONE], "nothing"),
        ("count_attempts", [GONE, "a"], 2),
        ("fetch_nested", [GONE, GONE, "a"], "a"),
    ],
)
class TestSameCalls(SameCalls):
    """It wraps the last failure unless it is told not to; the others do as they say."""


class TestDifferent(Different):
    """It adds up to a second to each wait."""

    waits = (1.0, 2.0, 4.0)
    added = 1.0


async def test_last_failure_is_raised_as_it_is(theirs, ours, failing, outcome_of):
    """Not within another, with a note for each attempt and a log."""
    wrapped, _ = await outcome_of(theirs.fetch_three_times(failing([GONE] * 3)))
    with pytest.raises(ConnectionResetError) as caught:
        await ours.fetch_three_times(failing([GONE] * 3))

    assert RetryError is wrapped
    assert caught.value is GONE
    assert 3 == len(caught.value.__notes__)
    assert "max_total_attempts" == RequestLog.of(caught.value).stop_reason


async def test_last_result_is_returned_as_it_is(theirs, ours, failing, outcome_of):
    """An answer that never got better is an answer still."""
    wrapped, _ = await outcome_of(theirs.fetch_when_done(failing(["pending"] * 3)))
    result, _ = await outcome_of(ours.fetch_when_done(failing(["pending"] * 3)))

    assert (RetryError, "pending") == (wrapped, result)


async def test_attempt_that_cannot_begin_in_time_is_not_made(
    theirs, ours, failing, outcome_of
):
    """The last one would end beyond the deadline."""
    slow = {"outcomes": itertools.repeat(GONE), "seconds": 4.0}
    beyond = await outcome_of(theirs.fetch_within_ten_seconds(failing(**slow)))
    within = await outcome_of(ours.fetch_within_ten_seconds(failing(**slow)))

    assert [(RetryError, 14.0), (ConnectionResetError, 9.0)] == [beyond, within]


@pytest.mark.parametrize(("wait", "seconds"), [(1.0, (14.0, 14.0)), (7.0, (15.0, 4.0))])
async def test_no_attempt_begins_after_the_delay(failing, outcome_of, wait, seconds):
    """Theirs may, after a long wait; neither cuts the last one."""
    theirs = tenacity.retry(
        stop=tenacity.stop_after_delay(10), wait=tenacity.wait_fixed(wait), reraise=True
    )
    rule = RetryRule(exceptions=[ConnectionError], backoff=Backoff.fixed(wait))
    ours = rpc(RetryingRpcClient.new_decorator(rule, stop_after_delay=10.0))

    async def fetch(client):
        return await client.fetch()

    taken = []
    for retried in (theirs, ours):
        client = failing(itertools.repeat(GONE), seconds=4.0)
        taken.append(await outcome_of(retried(fetch)(client)))

    assert [(ConnectionResetError, each) for each in seconds] == taken


async def test_each_retry_is_logged(either, failing, caplog):
    """As a warning, with the failure."""
    await either.fetch_loudly(failing([GONE, GONE, "a"]))

    lines = [record for record in caplog.records if "gone" in record.getMessage()]
    assert [("orders", "WARNING")] * 2 == [
        (record.name, record.levelname) for record in lines
    ]


async def test_calls_at_once_are_counted_apart(theirs, ours, failing):
    """Each has its own log; the statistics of a function are those of all its calls."""
    mixed, apart = [
        await asyncio.gather(
            module.count_attempts(failing([GONE, GONE, "a"], seconds=1.0)),
            module.count_attempts(failing([GONE, "a"], seconds=1.0)),
        )
        for module in (theirs, ours)
    ]

    assert [3, 2] == apart
    assert mixed != apart


async def test_budget_limits_the_retries_of_all_calls(ours, failing, outcome_of):
    """An outage costs a few retries, and then one request a call."""
    client = failing(itertools.repeat(GONE))
    for _ in range(20):
        await outcome_of(ours.fetch_within_budget(client))

    assert 22 == len(client.starts)
