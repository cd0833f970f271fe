"""Retries do not multiply: what was given up on further in is not retried again."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import aiohttp
import pytest
from chains import NOW, URL, Always, retrying, session, silence

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    RequestLog,
    RetryBudget,
    RetryingRpcClient,
    RetryRule,
    RetryRuleWithContent,
    RetryStrategy,
    capture_logs,
    client_decorator,
    rpc,
    smithy,
)
from aioretry_smithy.testing import ScriptedTransport


class GoneError(aiohttp.ClientConnectionError):
    """A failure of a request."""


BUILT_IN = {
    "on_server_error_status": RetryStrategy.on_server_error_status(NOW),
    "failsafe": RetryStrategy.failsafe(NOW),
    "on_unprocessed": RetryStrategy.on_unprocessed(NOW),
    "on_status": RetryStrategy.on_status(lambda status, cause: NOW),
    "superclass": RetryRule(exceptions=[aiohttp.ClientError], backoff=NOW),
    "function": RetryRule(exceptions=[lambda cause: True], backoff=NOW),
    "on_timeout": RetryRule(on_timeout=True, on_unprocessed=True, backoff=NOW),
    "on_content": RetryRuleWithContent(on_content=lambda content: True, backoff=NOW),
    "smithy": smithy.StandardRetryStrategy(max_attempts=3),
}


async def attempts_of(strategy, failure, inner, *, wrap=None):
    """Return the attempts of a function whose one request fails in the end."""

    @rpc(RetryingRpcClient.new_decorator(strategy, 3), idempotent=True)
    async def operation(client):
        try:
            await client.get(URL)
        except Exception as error:
            raise error if wrap is None else wrap(error) from None

    with capture_logs() as logs, suppress(Exception):
        async with session([failure] * 12, inner) as client:
            await operation(client)
    return logs[0].total_attempts


@pytest.mark.parametrize("strategy", BUILT_IN.values(), ids=BUILT_IN)
async def test_built_in_strategies_do_not_retry_what_was_given_up(strategy):
    """The session has made its attempts, and the function makes one."""
    inner = retrying(0.0, max_total_attempts=2)

    assert 1 == await attempts_of(strategy, GoneError(), inner)


@pytest.mark.parametrize("strategy", BUILT_IN.values(), ids=BUILT_IN)
async def test_built_in_strategies_retry_what_nobody_has_retried(strategy):
    """Without a retrying client further in, it is a failure like any other."""
    failure = aiohttp.ServerTimeoutError()
    if strategy is BUILT_IN["on_unprocessed"]:
        failure = aiohttp.ConnectionTimeoutError()

    assert 3 == await attempts_of(strategy, failure, lambda delegate: delegate)


EXHAUSTED = Backoff.fixed(0.0).with_max_attempts(2)
BUDGET = RetryBudget(deposit=0.0, capacity=1.0, brake_after=None)
IN_VAIN = {
    "max_total_attempts": retrying(0.0, max_total_attempts=2),
    "backoff_exhausted": retrying(RetryStrategy.on_server_error_status(EXHAUSTED)),
    "limiter": retrying(0.0, limiter=BUDGET),
    "deadline": retrying(9999.0),
    "retry_after_too_long": retrying(0.0, max_retry_after=1.0),
}


class BusyError(GoneError):
    """A failure that says when to come back."""

    retry_after = 60.0


@pytest.mark.parametrize(("reason", "inner"), [*IN_VAIN.items()])
async def test_reasons_to_give_up(reason, inner):
    """Each says that more attempts were wanted and not to be had."""
    seen = []

    @rpc(RetryingRpcClient.new_decorator(BUILT_IN["superclass"], 3))
    async def operation(client):
        try:
            await client.get(URL)
        except GoneError as error:
            seen.append(str(RequestLog.of(error).stop_reason))
            raise

    failure = BusyError() if reason == "retry_after_too_long" else GoneError()
    async with session([failure] * 12, inner, timeout=5000.0) as client:
        with pytest.raises(GoneError) as caught:
            await operation(client)

    assert [reason] == seen
    assert 1 == RequestLog.of(caught.value).total_attempts


async def test_failure_that_was_not_worth_a_retry_is_not_given_up():
    """``no_retry`` further in leaves it to the strategies further out."""
    inner = retrying(RetryStrategy.never())

    assert 3 == await attempts_of(BUILT_IN["superclass"], GoneError(), inner)


INNER = retrying(0.0, max_total_attempts=2)


async def test_rule_that_names_the_very_class_retries_it():
    """That is a decision about this failure."""
    rule = RetryRule(exceptions=[GoneError], backoff=NOW)

    assert 3 == await attempts_of(rule, GoneError(), INNER)


async def test_strategy_of_one_s_own_is_obeyed():
    """It was asked, and it knows."""
    assert 3 == await attempts_of(Always(), GoneError(), INNER)


def in_group(error):
    return ExceptionGroup("tasks", [error])


def in_groups(error):
    return ExceptionGroup("tasks", [in_group(error), ValueError()])


@pytest.mark.parametrize(
    ("wrap", "attempts"),
    [(in_group, 1), (in_groups, 3), (lambda error: GoneError(), 3)],
)
async def test_group_of_one_is_the_failure_itself(wrap, attempts):
    """Any other exception is a new failure, whatever it was raised from."""
    strategy = BUILT_IN["on_server_error_status"]

    assert attempts == await attempts_of(strategy, GoneError(), INNER, wrap=wrap)


async def test_group_that_ended_a_call_inside_is_the_failure_itself():
    """It has the log of that call, and what is in it that of one further in."""
    strategy = BUILT_IN["on_server_error_status"]

    @rpc()
    async def inner(client):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.get(URL))

    @rpc(RetryingRpcClient.new_decorator(strategy, 3))
    async def outer(client):
        await inner(client)

    async with session([GoneError()] * 12, INNER) as client:
        with pytest.raises(ExceptionGroup) as caught:
            await outer(client)

    log = RequestLog.of(caught.value)
    assert (1, "no_retry") == (log.total_attempts, log.stop_reason)


@pytest.mark.parametrize("strategy", BUILT_IN.values(), ids=BUILT_IN)
@pytest.mark.parametrize("nested", [False, True])
async def test_group_has_been_given_up_when_each_member_has(strategy, nested):
    """Two requests side by side, each with its retries: further out there are none."""

    @rpc(RetryingRpcClient.new_decorator(strategy, 3), idempotent=True)
    async def operation(client):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.get(URL))
            if not nested:
                tasks.create_task(client.get(URL))
                return
            async with asyncio.TaskGroup() as further:
                further.create_task(client.get(URL))
                further.create_task(client.get(URL))

    transport = ScriptedTransport([GoneError()] * 30)
    async with session(transport, INNER) as client:
        with pytest.raises(ExceptionGroup) as caught:
            await operation(client)

    assert 4 + 2 * nested == len(transport.requests)
    assert 1 == RequestLog.of(caught.value).total_attempts


async def test_group_with_a_member_that_nobody_has_retried_is_a_new_failure():
    """Another attempt may bring that one through."""
    plain = session([GoneError()] * 3)

    @rpc(RetryingRpcClient.new_decorator(BUILT_IN["on_server_error_status"], 3))
    async def operation(client):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.get(URL))
            tasks.create_task(plain.get(URL))

    async with plain, session([GoneError()] * 6, INNER) as client:
        with pytest.raises(ExceptionGroup) as caught:
            await operation(client)

    assert 3 == RequestLog.of(caught.value).total_attempts


async def test_group_is_given_up_all_the_way_out():
    """Through functions with a retrying client and without one."""
    strategy = BUILT_IN["on_server_error_status"]

    @rpc()
    async def inmost(client):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.get(URL))
            tasks.create_task(client.get(URL))

    @rpc(RetryingRpcClient.new_decorator(strategy, 3))
    async def inner(client):
        await inmost(client)

    @rpc(RetryingRpcClient.new_decorator(strategy, 3))
    async def outer(client):
        await inner(client)

    transport = ScriptedTransport([GoneError()] * 30)
    async with session(transport, INNER) as client:
        with pytest.raises(ExceptionGroup):
            await outer(client)

    assert 4 == len(transport.requests)


async def test_rule_that_names_the_group_retries_it():
    """As one that names the very class of a failure does."""
    rule = RetryRule(exceptions=[ExceptionGroup], backoff=NOW)

    @rpc(RetryingRpcClient.new_decorator(rule, 3))
    async def operation(client):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.get(URL))
            tasks.create_task(client.get(URL))

    async with session([GoneError()] * 30, INNER) as client:
        with pytest.raises(ExceptionGroup) as caught:
            await operation(client)

    assert 3 == RequestLog.of(caught.value).total_attempts


async def test_error_of_a_response_is_that_of_its_call():
    """The session gave up on the 503 that the function raises for."""

    @rpc(RetryingRpcClient.new_decorator(BUILT_IN["on_server_error_status"], 3))
    async def operation(client):
        (await client.get(URL)).raise_for_status()

    async with session([503] * 12, INNER) as client:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await operation(client)

    assert 1 == RequestLog.of(caught.value).total_attempts


async def test_failure_is_given_up_all_the_way_out():
    """Through functions with a retrying client and without one."""
    strategy = BUILT_IN["on_server_error_status"]

    @rpc()
    async def inmost(client):
        await client.get(URL)

    @rpc(RetryingRpcClient.new_decorator(strategy, 3))
    async def inner(client):
        await inmost(client)

    @rpc(RetryingRpcClient.new_decorator(strategy, 3))
    async def outer(client):
        await inner(client)

    async with session([GoneError()] * 12, INNER) as client:
        with pytest.raises(GoneError) as caught:
            await outer(client)

    log = RequestLog.of(caught.value)
    (call,) = log.children[0].calls
    assert (1, "no_retry") == (log.total_attempts, log.stop_reason)
    assert (1, "no_retry") == (call.total_attempts, call.stop_reason)


async def test_failure_is_given_up_through_a_retrying_decorator_of_one_s_own():
    """The calls inside are those of its call, not of the attempts that it derives."""

    @client_decorator
    async def once(delegate, ctx, request):
        return await delegate.execute(ctx.derive(request), request)

    @rpc(once)
    async def inner(client):
        await client.get(URL)

    @rpc(RetryingRpcClient.new_decorator(BUILT_IN["on_server_error_status"], 3))
    async def outer(client):
        await inner(client)

    async with session([GoneError()] * 12, INNER) as client:
        with pytest.raises(GoneError) as caught:
            await outer(client)

    log = RequestLog.of(caught.value)
    notes = ["attempt 1", "attempt 2"]
    assert (1, "no_retry") == (log.total_attempts, log.stop_reason)
    assert notes == [note.partition(":")[0] for note in caught.value.__notes__]


async def test_exception_of_an_earlier_call_is_a_new_failure():
    """Some are kept, and raised again and again."""
    kept = GoneError()
    strategy = BUILT_IN["on_server_error_status"]

    @rpc(RetryingRpcClient.new_decorator(strategy, 3))
    async def operation(client):
        await client.get(URL)
        raise kept

    async with session([200] * 12) as client:
        for _ in range(2):
            with pytest.raises(GoneError) as caught:
                await operation(client)

    assert 3 == RequestLog.of(caught.value).total_attempts


async def test_call_that_the_log_did_not_keep_has_given_up_too():
    """Operations of more than a hundred requests multiply least of all."""

    @rpc(RetryingRpcClient.new_decorator(BUILT_IN["on_server_error_status"], 3))
    async def operation(client):
        for _ in range(101):
            await client.get(URL)

    async with session([200] * 100 + [GoneError()] * 12, INNER) as client:
        with pytest.raises(GoneError) as caught:
            await operation(client)

    assert 1 == RequestLog.of(caught.value).total_attempts


@pytest.mark.parametrize(
    ("seconds", "reason"), [(60.0, "cancelled"), (2.0 - 1e-7, "deadline")]
)
async def test_limit_of_the_attempt_itself_is_not_given_up(seconds, reason):
    """A request that it ends, or that ends with it, has used up the attempt's time."""
    rule = RetryRule(on_timeout=True, backoff=NOW)

    @rpc(RetryingRpcClient.new_decorator(rule, 3, 2.0))
    async def operation(client):
        await client.get(URL)

    async with session([silence] * 12, retrying(0.5), timeout=seconds) as client:
        with pytest.raises(AttemptTimeoutError) as caught:
            await operation(client)

    log = RequestLog.of(caught.value)
    assert (3, "max_total_attempts") == (log.total_attempts, log.stop_reason)
    assert {reason} == {str(each.calls[0].stop_reason) for each in log.children}


@pytest.mark.parametrize(("first", "attempts"), [(200, 1), (None, 3)])
async def test_function_that_reached_a_server_is_not_unprocessed(first, attempts):
    """A refused connection after a request that went through proves nothing."""

    @rpc(RetryingRpcClient.new_decorator(BUILT_IN["on_unprocessed"], 3))
    async def operation(client):
        for _ in answers[1:]:
            await client.get(URL)

    refused = aiohttp.ConnectionTimeoutError()
    answers = [refused] * 2 if first is None else [first, refused, refused]
    async with session([*answers, refused, refused]) as client:
        with pytest.raises(aiohttp.ConnectionTimeoutError) as caught:
            await operation(client)

    assert attempts == RequestLog.of(caught.value).total_attempts


async def test_task_group_around_a_failure_does_not_make_it_unprocessed():
    """The request before it went through all the same."""

    @rpc(
        RetryingRpcClient.new_decorator(RetryStrategy.failsafe(NOW), 3),
        idempotent=False,
    )
    async def operation(client):
        await client.post(URL)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.post(URL))

    refused = aiohttp.ConnectionTimeoutError()
    async with session([200, refused, 200, refused, 200, refused]) as client:
        with pytest.raises(ExceptionGroup) as caught:
            await operation(client)

    assert 1 == RequestLog.of(caught.value).total_attempts
