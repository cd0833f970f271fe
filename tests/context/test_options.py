"""Blocks of options: which calls are in them, which block wins, what they change."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from chains import URL, now, response_of, retrying_session, session, silence

from aioretry_smithy import (
    Backoff,
    RequestLog,
    ResponseTimeoutError,
    RetryConfig,
    RetryStopReason,
    RetryStrategy,
    capture_logs,
    request_options,
    smithy,
)
from aioretry_smithy._context.options import current_options, sending_with
from aioretry_smithy.testing import ScriptedTransport


async def test_inner_block_completes_the_outer_one():
    """Its options win, and the outer block gives those that it does not mention."""
    transport = ScriptedTransport([200, 200])
    outer = request_options(
        retry=RetryConfig.no_retry(),
        response_timeout=5.0,
        idempotent=True,
        attributes={"a": 1, "b": 1},
    )
    inner = request_options(response_timeout=None, attributes={"b": 2})
    async with session(transport) as client:
        with outer, inner:
            await client.get(URL)
        with request_options(response_timeout=5.0), request_options():
            await client.get(URL)
    first, second = transport.contexts

    assert {"a": 1, "b": 2} == first.attributes
    assert (None, 5.0) == (first.deadline, second.deadline)
    assert first.options.idempotent
    assert 1 == first.options.retry.max_total_attempts


async def test_block_that_fails_is_left_behind():
    """Its options are gone after it."""
    with pytest.raises(KeyError), request_options(response_timeout=1.0):
        raise KeyError

    transport = ScriptedTransport([200])
    await response_of(session(transport))

    assert transport.contexts[0].options is None


async def test_task_never_sees_the_options_of_another():
    """200 tasks that take turns at random, each with its own or none."""
    random = Random(7)

    def answer(ctx, request):
        seen = ctx.attributes.get("task", "none")
        assert request.headers["task"] == str(seen)
        assert (ctx.options is None) == (seen == "none")
        return 200

    async def work(number, client):
        for _ in range(5):
            await asyncio.sleep(random.random())
            if number % 4 == 0:
                await client.get(URL, headers={"task": "none"})
            else:
                with request_options(attributes={"task": number}):
                    await asyncio.sleep(random.random())
                    await client.get(URL, headers={"task": str(number)})
                    await asyncio.sleep(random.random())

    transport = ScriptedTransport([answer] * 1000)
    async with session(transport) as client, asyncio.TaskGroup() as tasks:
        for number in range(200):
            tasks.create_task(work(number, client))

    assert 1000 == len(transport.contexts)


async def test_tasks_started_in_a_block_inherit_its_options():
    """As with every context variable."""
    transport = ScriptedTransport([200])
    async with session(transport) as client:
        with request_options(response_timeout=3.0):
            task = asyncio.create_task(client.get(URL))
        await task

    assert 3.0 == transport.contexts[0].deadline


def test_block_decorates_no_function():
    """A coroutine function is over before its coroutine begins."""
    with pytest.raises(TypeError):

        @request_options(response_timeout=1.0)
        async def call():
            pass


async def test_block_in_a_generator_may_end_in_another_task():
    """Which has nothing to undo."""

    async def generator():
        with request_options(response_timeout=1.0):
            yield

    pending = generator()
    await asyncio.create_task(anext(pending))
    await asyncio.create_task(pending.aclose())

    transport = ScriptedTransport([200])
    await response_of(session(transport))

    assert transport.contexts[0].options is None


async def test_block_can_be_entered_again():
    """Also within itself."""
    block = request_options(response_timeout=2.0)
    transport = ScriptedTransport([200, 200])
    async with session(transport) as client:
        with block, block:
            await client.get(URL)
        with block:
            await client.get(URL)

    assert [2.0, 2.0] == [ctx.deadline for ctx in transport.contexts]


@pytest.mark.parametrize("other", [None, "same", "different"])
async def test_block_of_overlapping_stays_ends_for_each_on_its_own(other):
    """Two tasks enter one object, and the first to enter is the first to leave."""
    block = request_options(idempotent=True)
    second = {
        None: block,
        "same": request_options(idempotent=True),
        "different": request_options(idempotent=False),
    }[other]
    transport = ScriptedTransport([200] * 4)
    async with session(transport) as client:

        async def stay(which, begin, end):
            await asyncio.sleep(begin)
            with which:
                await asyncio.sleep(end - begin)
                await client.post(URL)
            await client.post(URL)

        await asyncio.gather(stay(block, 0, 2), stay(second, 1, 3))
    options = [ctx.options for ctx in transport.contexts]

    assert [True, None, other != "different", None] == [
        each and each.idempotent for each in options
    ]


async def test_stays_of_one_task_may_overlap():
    """Generators that are closed in another order leave what is still open."""
    transport = ScriptedTransport([200] * 3)
    first, second = (
        request_options(idempotent=True),
        request_options(response_timeout=2.0),
    )

    async def within(block):
        with block:
            yield

    one, other = within(first), within(second)
    async with session(transport) as client:
        await anext(one)
        await anext(other)
        await client.get(URL)
        await one.aclose()
        await client.get(URL)
        await other.aclose()
        await client.get(URL)
    both, left, none = (ctx.options for ctx in transport.contexts)

    assert (True, 2.0) == (both.idempotent, both.response_timeout)
    assert (None, 2.0) == (left.idempotent, left.response_timeout)
    assert None is none


async def test_threads_may_share_a_block():
    """Each thread has a context of its own, in loops or in plain code."""
    block = request_options(response_timeout=2.0)

    def enter_and_leave():
        with block:
            inside = current_options()
        return inside.response_timeout, current_options()

    with block:
        with ThreadPoolExecutor(4) as threads:
            results = [threads.submit(enter_and_leave) for _ in range(50)]
            seen = {result.result() for result in results}
        still_inside = current_options()

    assert {(2.0, None)} == seen
    assert 2.0 == still_inside.response_timeout
    assert None is current_options()


async def test_code_that_sends_has_the_options_only_for_as_long():
    """A connection that is opened meanwhile keeps the context variables for ever."""
    kept = []

    async def send():
        kept.append(current_options())
        return kept[0].idempotent

    with request_options(idempotent=True):
        during = await sending_with(current_options(), send)

    assert (True, None) == (during, kept[0].idempotent)


async def attempts_of(client, method="GET", **options):
    """Make one call and say how many attempts it made."""
    async with client.request(method, URL, **options) as response:
        return RequestLog.of(response).total_attempts


async def test_other_way_to_retry_holds_in_the_block_alone():
    """The calls before and after it are retried as ever."""
    async with retrying_session([503, 200, 503, 503, 200]) as client:
        before = await attempts_of(client)
        with request_options(retry=RetryConfig.no_retry()):
            inside = await attempts_of(client)
        after = await attempts_of(client)

    assert (2, 1, 2) == (before, inside, after)


async def test_other_way_to_retry_may_be_of_another_kind():
    """All settings of the configuration count, not only the strategy."""
    strategy = smithy.StandardRetryStrategy(max_attempts=2)
    with capture_logs() as logs, request_options(retry=RetryConfig(strategy)):
        await response_of(retrying_session([503, 503]))

    assert RetryStopReason.MAX_TOTAL_ATTEMPTS == logs[0].stop_reason
    assert 472 + 14 == strategy.quota_for("localhost:80").available_capacity


@pytest.mark.parametrize("options", [{}, {"timeout": 60}])
async def test_response_timeout_has_precedence_over_all_others(options):
    """It comes before that of the session and that of the request."""
    with request_options(response_timeout=2.0), pytest.raises(ResponseTimeoutError):
        await response_of(retrying_session([silence], timeout=30.0), **options)

    assert 2.0 == now()


async def test_response_timeout_can_be_lifted():
    """None is no limit."""

    async def late(ctx, request):
        assert ctx.root.deadline is None
        await asyncio.sleep(60)
        return 200

    with request_options(response_timeout=None):
        await response_of(retrying_session([late], timeout=30.0))

    assert 60.0 == now()


@pytest.mark.parametrize(
    ("method", "idempotent", "attempts"),
    [
        ("POST", None, 1),
        ("POST", True, 2),
        ("GET", None, 2),
        ("GET", False, 1),
    ],
)
@pytest.mark.parametrize(
    ("strategy", "settings"),
    [
        (RetryStrategy.failsafe(Backoff.without_delay()), {}),
        (
            smithy.StandardRetryStrategy(),
            {"classifiers": (*smithy.DEFAULT_CLASSIFIERS, smithy.only_idempotent)},
        ),
    ],
)
async def test_caller_may_know_better_what_is_idempotent(
    strategy, settings, method, idempotent, attempts
):
    """Than the method alone."""
    with request_options(idempotent=idempotent):
        async with retrying_session([503, 200], strategy, **settings) as client:
            assert attempts == await attempts_of(client, method)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("retry", RetryStrategy.never(), "a RetryConfig or None"),
        (
            "retry",
            False,
            "a RetryConfig or None; RetryConfig.no_retry() for no retries",
        ),
        ("response_timeout", 0, "finite and > 0, or None"),
        ("response_timeout", float("inf"), "finite and > 0, or None"),
        ("response_timeout", "3", "finite and > 0, or None"),
        ("idempotent", 1, "True, False or None"),
        ("attributes", ["tenant"], "a mapping or None"),
    ],
)
def test_argument_out_of_range_is_told_at_once(name, value, expected):
    """Before any call is made."""
    with pytest.raises(ValueError) as caught, request_options(**{name: value}):
        pass

    assert f"{name}: {value!r} (expected: {expected})" == str(caught.value)


async def test_retry_as_an_argument_of_a_request_is_told_where_it_belongs():
    """By itself aiohttp says only that it has none, which is enough for others."""
    async with retrying_session([]) as client:
        with pytest.raises(TypeError, match="argument 'retry'") as caught:
            await client.get(URL, retry=False)
        with pytest.raises(TypeError, match="argument 'retires'") as other:
            await client.get(URL, retires=False)

    (note,) = caught.value.__notes__
    assert "request_options(retry=" in note
    assert "RetryConfig.no_retry()" in note
    assert [] == getattr(other.value, "__notes__", [])


async def test_attributes_are_those_of_the_moment():
    """Changes to the mapping later change no call."""
    attributes = {"tenant": 7}
    transport = ScriptedTransport([200])
    async with retrying_session(transport) as client:
        with request_options(attributes=attributes):
            attributes["tenant"] = 8
            await client.get(URL)

    assert {"tenant": 7} == transport.contexts[0].attributes
