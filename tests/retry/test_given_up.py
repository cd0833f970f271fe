"""Retries do not multiply: what was given up on further in is not retried again."""

import asyncio

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


async def log_of_failure(operation, answers, inner=(), kind=Exception):
    """Let an operation with a session fail; return the log of its failure."""
    async with session(answers, *inner) as client:
        with pytest.raises(kind) as caught:
            await operation(client)
    return RequestLog.of(caught.value)


async def attempts_of(strategy, failure, *inner, wrap=None):
    """Return the attempts of a function whose one request fails in the end."""

    @rpc(RetryingRpcClient.new_decorator(strategy, 3), idempotent=True)
    async def operation(client):
        try:
            await client.get(URL)
        except Exception as error:
            raise error if wrap is None else wrap(error) from None

    log = await log_of_failure(operation, [failure] * 12, inner)
    return log.total_attempts


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

    assert 3 == await attempts_of(strategy, failure)


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
SERVER_ERRORS = BUILT_IN["on_server_error_status"]
THRICE = RetryingRpcClient.new_decorator(SERVER_ERRORS, 3)


async def get(client):
    await client.get(URL)


async def get_two_at_once(client):
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(client.get(URL))
        tasks.create_task(client.get(URL))


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
    assert attempts == await attempts_of(SERVER_ERRORS, GoneError(), INNER, wrap=wrap)


def in_deep_groups(error):
    group = error
    for _ in range(900):
        group = ExceptionGroup("tasks", [group, error])
    return group


async def test_groups_may_be_nested_deeper_than_functions():
    """All that is in them has been given up; the caller gets the group."""
    inner = rpc(THRICE)(get)

    async def operation(client):
        try:
            await inner(client)
        except GoneError as error:
            raise in_deep_groups(error) from None

    outer = rpc(THRICE)(operation)
    log = await log_of_failure(outer, [GoneError()] * 12, [INNER], ExceptionGroup)

    assert (1, "no_retry") == (log.total_attempts, log.stop_reason)


async def test_group_that_ended_a_call_inside_is_the_failure_itself():
    """It has the log of that call, and what is in it that of one further in."""

    @rpc()
    async def inner(client):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.get(URL))

    outer = rpc(THRICE)(inner)
    log = await log_of_failure(outer, [GoneError()] * 12, [INNER], ExceptionGroup)

    assert (1, "no_retry") == (log.total_attempts, log.stop_reason)


@pytest.mark.parametrize("strategy", BUILT_IN.values(), ids=BUILT_IN)
@pytest.mark.parametrize("nested", [False, True])
async def test_group_has_been_given_up_when_each_member_has(strategy, nested):
    """Two requests side by side, each with its retries: further out there are none."""

    @rpc(RetryingRpcClient.new_decorator(strategy, 3), idempotent=True)
    async def operation(client):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.get(URL))
            tasks.create_task((get_two_at_once if nested else get)(client))

    transport = ScriptedTransport([GoneError()] * 30)
    log = await log_of_failure(operation, transport, [INNER], ExceptionGroup)

    assert 4 + 2 * nested == len(transport.requests)
    assert 1 == log.total_attempts


async def test_group_with_a_member_that_nobody_has_retried_is_a_new_failure():
    """Another attempt may bring that one through."""
    plain = session([GoneError()] * 3)

    @rpc(THRICE)
    async def operation(client):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.get(URL))
            tasks.create_task(plain.get(URL))

    async with plain:
        answers = [GoneError()] * 6
        log = await log_of_failure(operation, answers, [INNER], ExceptionGroup)

    assert 3 == log.total_attempts


async def test_error_of_a_response_is_that_of_its_call():
    """The session gave up on the 503 that the function raises for."""

    @rpc(THRICE)
    async def operation(client):
        (await client.get(URL)).raise_for_status()

    kind = aiohttp.ClientResponseError
    log = await log_of_failure(operation, [503] * 12, [INNER], kind)

    assert 1 == log.total_attempts


async def test_failure_is_given_up_all_the_way_out():
    """Through functions with a retrying client and without one."""
    outer = rpc(THRICE)(rpc(THRICE)(rpc()(get)))
    log = await log_of_failure(outer, [GoneError()] * 12, [INNER], GoneError)

    (call,) = log.children[0].calls
    assert (1, "no_retry") == (log.total_attempts, log.stop_reason)
    assert (1, "no_retry") == (call.total_attempts, call.stop_reason)


async def test_failure_is_given_up_through_a_retrying_decorator_of_one_s_own():
    """The calls inside are those of its call, not of the attempts that it derives."""

    @client_decorator
    async def once(delegate, ctx, request):
        return await delegate.execute(ctx.derive(request), request)

    failure = GoneError()
    log = await log_of_failure(rpc(THRICE)(rpc(once)(get)), [failure] * 12, [INNER])

    notes = ["attempt 1", "attempt 2"]
    assert (1, "no_retry") == (log.total_attempts, log.stop_reason)
    assert notes == [note.partition(":")[0] for note in failure.__notes__]


async def test_exception_of_an_earlier_call_is_a_new_failure():
    """Some are kept, and raised again and again."""
    kept = GoneError()

    @rpc(THRICE)
    async def operation(client):
        await client.get(URL)
        raise kept

    for _ in range(2):
        log = await log_of_failure(operation, [200] * 6, kind=GoneError)

    assert 3 == log.total_attempts


async def test_call_that_the_log_did_not_keep_has_given_up_too():
    """Operations of more than a hundred requests multiply least of all."""

    @rpc(THRICE)
    async def operation(client):
        for _ in range(101):
            await client.get(URL)

    answers = [200] * 100 + [GoneError()] * 12
    log = await log_of_failure(operation, answers, [INNER], GoneError)

    assert 1 == log.total_attempts


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
    kind = aiohttp.ConnectionTimeoutError
    log = await log_of_failure(operation, [*answers, refused, refused], kind=kind)

    assert attempts == log.total_attempts


async def test_task_group_around_a_failure_does_not_make_it_unprocessed():
    """The request before it went through all the same."""
    failsafe = RetryingRpcClient.new_decorator(RetryStrategy.failsafe(NOW), 3)

    @rpc(failsafe, idempotent=False)
    async def operation(client):
        await client.post(URL)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.post(URL))

    answers = [200, aiohttp.ConnectionTimeoutError()] * 3
    log = await log_of_failure(operation, answers, kind=ExceptionGroup)

    assert 1 == log.total_attempts
