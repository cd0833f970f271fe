"""What an attempt has cost in the end: who is asked, when, and with what."""

import asyncio
import json
import logging
import math

import aiohttp
import pytest
from chains import NOW, URL, after, retrying, session

from aioretry_smithy import (
    HedgingClient,
    RateLimit,
    RateLimitingClient,
    RetryingClient,
    RetryStrategy,
    RetryStrategyWithContent,
    capture_logs,
    client_decorator,
    new_response,
)
from aioretry_smithy.testing import FaultInjectingClient, InjectedFault

limiting = RateLimitingClient.new_decorator
USAGE = b'{"usage": 7}'
ANSWER = 200, {}, USAGE


class Meter:
    """A limit whose ``actual`` notes what it is asked, and reads the usage."""

    def __init__(self, burst=100):
        self.asked = []
        self.limit = RateLimit(
            0.001, burst=burst, cost=lambda ctx, request: 20, actual=self.actual
        )

    def actual(self, log, content):
        self.asked.append((log.attempt, log.response_status, content))
        return json.loads(content).get("usage") if content else None

    @property
    def spent(self):
        bucket = self.limit._line.rule
        room = (bucket._full_at - asyncio.get_running_loop().time()) / bucket._interval
        return round(room, 1)


@pytest.fixture
def meter():
    return Meter()


async def ask(client, **options):
    async with client, client.get(URL, **options) as response:
        return await response.read()


class Locked(RetryStrategyWithContent):
    """Looks at the first bytes of each body."""

    def __init__(self, length):
        self.max_content_length = length

    def should_retry(self, ctx, cause, content):
        return NOW if content == b"{} " else None


LIMIT = None
"""Where the limit stands in a chain."""

BUFFERED = retrying(0.5, buffer_response=True)
HEDGED = HedgingClient.new_decorator(1.0)
LOOKING = RetryingClient.new_decorator(Locked(1000))
BROKEN = aiohttp.ServerDisconnectedError()


@pytest.mark.parametrize(
    ("chain", "answers", "asked", "spent"),
    [
        ([LIMIT], [ANSWER], [(None, 200, None)], 20.0),
        ([LIMIT, retrying(0.5)], [ANSWER], [(1, 200, None)], 20.0),
        (
            [LIMIT, BUFFERED],
            [(503, {}, b'{"usage": 3}'), ANSWER],
            [(1, 503, b'{"usage": 3}'), (2, 200, USAGE)],
            10.0,
        ),
        ([BUFFERED, LIMIT], [503, ANSWER], [(None, 200, USAGE)], 7.0),
        (
            [LIMIT, HEDGED, BUFFERED],
            [after(1.5, 500), after(1.0, ANSWER)],
            [(1, 500, b""), (2, 200, USAGE)],
            27.0,
        ),
        (
            [LIMIT, LOOKING],
            [(200, {}, b"{} "), ANSWER],
            [(1, 200, b"{} "), (2, 200, USAGE)],
            27.0,
        ),
        ([LIMIT, BUFFERED], [BROKEN, ANSWER], [(2, 200, USAGE)], 27.0),
    ],
    ids=[
        "at the headers without a buffer",
        "at the headers of an attempt",
        "with content, whatever the status",
        "once, outside of retries",
        "each with its own, inside a hedge",
        "with what a strategy has read to its end",
        "not for a failure",
    ],
)
async def test_it_is_asked_for_each_answer(meter, chain, answers, asked, spent):
    """Where there is no content the estimate stands, and after a failure."""
    limit = limiting(meter.limit)
    await ask(session(answers, *(limit if each is LIMIT else each for each in chain)))

    assert (asked, spent) == (meter.asked, meter.spent)


async def test_a_body_that_breaks_is_not_asked_about(meter):
    """Nor the same answer a second time."""
    cut = InjectedFault.cut_body(after=4)
    faults = iter([True, False])
    cutting = FaultInjectingClient.new_decorator(
        cut, enabled=lambda ctx, request: next(faults)
    )
    chain = (
        cutting,
        limiting(meter.limit),
        retrying(RetryStrategy.failsafe(NOW), buffer_response=True),
    )
    await ask(session([ANSWER, ANSWER], *chain))

    assert [(2, 200, USAGE)] == meter.asked
    assert 27.0 == meter.spent


async def test_an_answer_that_a_decorator_has_replaced_has_its_own_content(meter):
    """What the caller reads did not come from the limit."""

    @client_decorator
    async def replacing(delegate, ctx, request):
        await delegate.execute(ctx, request)
        return new_response(request, body=b'{"usage": 1}')

    chain = limiting(meter.limit), replacing, retrying(0.5, buffer_response=True)
    await ask(session([ANSWER], *chain))

    assert [(1, 200, USAGE)] == meter.asked


async def test_an_answer_that_a_decorator_makes_a_failure_of_has_its_cost(meter):
    """The server has done the work, whatever becomes of it."""

    @client_decorator
    async def strict(delegate, ctx, request):
        await delegate.execute(ctx, request)
        raise aiohttp.ClientPayloadError

    never = retrying(RetryStrategy.never(), buffer_response=True)
    chain = limiting(meter.limit), strict, never
    with pytest.raises(aiohttp.ClientPayloadError):
        await ask(session([ANSWER], *chain))

    assert [(1, 200, USAGE)] == meter.asked


async def test_a_call_that_is_cancelled_keeps_nothing(meter):
    """The answer is not asked about, and the estimate stands."""

    class Endless(RetryStrategy):
        async def should_retry(self, ctx, cause):
            await asyncio.sleep(math.inf)

    strategy = RetryingClient.new_decorator(Endless() | Locked(9))
    client = session([ANSWER], limiting(meter.limit), strategy)
    with capture_logs() as logs:
        async with client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0):
                    await client.get(URL)

    assert [] == meter.asked
    assert 20.0 == meter.spent
    assert 1 == len(logs)


@pytest.mark.parametrize("figure", [-1, math.nan, math.inf, "7", True], ids=repr)
async def test_a_figure_that_is_none_is_logged(caplog, figure):
    """The answer is not lost for it, and the estimate stands."""
    limit = RateLimit(5, actual=lambda log, content: figure)

    assert USAGE == await ask(session([ANSWER], limiting(limit)))

    (record,) = caplog.records
    assert (logging.WARNING, f"{limit!r}: actual raised") == (
        record.levelno,
        record.getMessage(),
    )
    assert f"actual: {figure!r} (expected: finite and >= 0)" == str(record.exc_info[1])


async def test_what_it_raises_is_logged(caplog, meter):
    """Such as for an answer that has no usage."""
    chain = limiting(meter.limit), retrying(0.5, buffer_response=True)

    assert b"oops" == await ask(session([(400, {}, b"oops")], *chain))

    (record,) = caplog.records
    assert json.JSONDecodeError is record.exc_info[0]
    assert 20.0 == meter.spent


async def test_the_last_figure_counts(meter):
    """That of the caller comes after the other."""
    chain = limiting(meter.limit), retrying(0.5, buffer_response=True)
    async with session([ANSWER], *chain) as client:
        response = await client.get(URL)

        assert 7.0 == meter.spent

        meter.limit.settle(response, 9)

        assert 9.0 == meter.spent


async def test_the_log_is_complete_where_the_body_is_read(meter):
    """It says how long that took."""
    ends = []
    meter.limit._actual = lambda log, content: ends.append(
        (log.is_complete, log.response_length)
    )
    chain = limiting(meter.limit), retrying(0.5, buffer_response=True)
    await ask(session([ANSWER], *chain))

    assert [(True, len(USAGE))] == ends


class SlottedResponse:
    """A response of a user's, which nothing can be written on or refer to weakly."""

    __slots__ = ("headers", "status")

    def __init__(self):
        self.headers, self.status = {}, 200

    def close(self):
        """Do nothing: there is no connection."""


async def test_a_response_that_refuses_attributes_is_not_lost():
    """It is charged and asked about as others; ``settle()`` alone does not know it."""
    asked = []

    def actual(log, content):
        asked.append((log.response_status, content))

    @client_decorator
    async def answer(delegate, ctx, request):
        return SlottedResponse()

    limit = RateLimit(10, cost=lambda ctx, request: 2, actual=actual)
    async with session([], answer, limiting(limit)) as client:
        response = await client.get(URL)

    assert 200 == response.status
    assert [(200, None)] == asked
    with pytest.raises(ValueError, match="a response that passed this limit"):
        limit.settle(response, 1)
