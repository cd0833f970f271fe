"""A log of thousands of attempts is no larger than one of a hundred."""

from __future__ import annotations

import asyncio
import itertools
import time

import aiohttp
import pytest
from chains import NOW, SAFELY, URL, log_of, notes_of, refused, retrying, session

from aioretry_smithy import (
    HedgingClient,
    RequestLog,
    RetryingRpcClient,
    RetryRule,
    capture_logs,
    client_decorator,
    is_unprocessed,
    new_response,
    rpc,
)

MANY = 2000
KEPT = [*range(1, 51), *range(MANY - 49, MANY + 1)]


def endless(answer):
    return (answer() if callable(answer) else answer for _ in itertools.count())


async def test_first_and_last_attempts_are_kept():
    """Fifty of each; the count says all."""
    client = session(endless(503), retrying(SAFELY, max_total_attempts=MANY))
    log = await log_of(client)

    assert KEPT == [each.attempt for each in log.children]
    assert MANY == log.total_attempts == log.to_dict()["total_attempts"]
    assert f"{MANY} attempts" in log.render()
    assert f"and {MANY - 100} more attempts" in log.render()
    assert True is log.sent


@pytest.mark.slow
@pytest.mark.parametrize("is_same", [True, False], ids=["one error", "many errors"])
async def test_notes_are_about_those_that_are_kept(is_same):
    """They stay short."""
    error = refused()
    answers = endless(error if is_same else refused)
    client = session(answers, retrying(SAFELY, max_total_attempts=MANY))
    async with client:
        with pytest.raises(aiohttp.ClientConnectorError) as caught:
            await client.get(URL)

    notes = notes_of(caught.value)
    assert [f"attempt {number}" for number in KEPT] == [
        note.partition(":")[0] for note in notes
    ]
    assert MANY == RequestLog.of(caught.value).total_attempts


async def test_functions_keep_as_many():
    """And so does any call."""
    rule = RetryRule(exceptions=LookupError, backoff=NOW)
    retry = RetryingRpcClient.new_decorator(rule, max_total_attempts=MANY)

    @rpc(retry)
    async def find():
        raise LookupError

    with capture_logs() as logs, pytest.raises(LookupError):
        await find()

    assert KEPT == [each.attempt for each in logs[0].children]


@pytest.mark.slow
async def test_attempts_take_no_quadratic_time():
    """Eight times as many attempts take about eight times as long."""

    async def seconds(many):
        client = session(endless(refused), retrying(SAFELY, max_total_attempts=many))
        started = time.process_time()
        await log_of(client)
        return time.process_time() - started

    few, many = [min([await seconds(n) for _ in range(2)]) for n in (250, MANY)]

    assert many < 25 * few


async def test_what_a_decorator_sends_again_and_again_is_kept_likewise():
    """The attempt that it is part of stays, and so does the answer that counts."""

    @client_decorator
    async def insisting(delegate, ctx, request):
        for _ in range(300):
            response = await delegate.execute(ctx.derive(request), request)
        return response

    log = await log_of(session(endless(200), insisting))

    assert 300 == log.total_attempts
    assert [*range(1, 51), *range(251, 301)] == [each.attempt for each in log.children]


async def test_request_that_was_sent_counts_though_it_is_not_kept():
    """A refusal after a hundred requests does not make the attempt unprocessed."""

    @client_decorator
    async def insisting(delegate, ctx, request):
        for _ in range(60):
            await delegate.execute(ctx.derive(request), request)
        for _ in range(120):
            try:
                await delegate.execute(ctx.derive(request), request)
            except aiohttp.ClientConnectorError as error:
                last = error
        raise last

    answers = [*[200] * 60, *[refused() for _ in range(120)]]
    retry = retrying(SAFELY, max_total_attempts=2)
    log = await log_of(session(answers, insisting, retry), method="POST")

    assert False is is_unprocessed(log.response_cause)
    assert 181 == log.total_attempts
    assert True is log.sent


async def test_request_under_way_is_kept():
    """However many hedges there are."""
    release = []

    async def silent(ctx, request):
        gate = asyncio.Event()
        release.append(gate)
        if len(release) == 130:
            return new_response(request, 200)
        await gate.wait()
        raise AssertionError

    log = await log_of(
        session(
            itertools.repeat(silent), HedgingClient.new_decorator(0.1, max_hedges=150)
        )
    )

    assert (200, 130, 130) == (
        log.response_status,
        log.total_attempts,
        len(log.children),
    )
    assert 129 == sum(each.superseded for each in log.children)
