"""Headers of the AWS SDKs name calls, attempts and deadlines."""

import asyncio
from datetime import datetime, timedelta
from types import SimpleNamespace
from uuid import UUID

import pytest
from chains import chain, response_of, session, set_time_of_day

from aioretry_smithy import (
    Backoff,
    LoggingClient,
    RequestLog,
    RetryingClient,
    RetryStrategy,
)
from aioretry_smithy.smithy import (
    SimpleRetryStrategy,
    StandardRetryStrategy,
    sdk_headers,
)
from aioretry_smithy.testing import ScriptedTransport

URL = "http://localhost/"
ALWAYS = RetryStrategy.on_server_error_status(Backoff.without_delay())


async def sent(answers, strategy=None, *, outside=None, limit=None, **settings):
    """Make a call, and return the two headers of each attempt, and the log."""
    transport = ScriptedTransport(answers)
    builder = chain(transport, sdk_headers)
    if strategy is not None:
        builder.decorator(RetryingClient.new_decorator(strategy, **settings))
    if outside is not None:
        builder.decorator(outside)
    builder.response_timeout(limit)
    async with builder.build() as client, client.get(URL) as response:
        log = RequestLog.of(response)
    headers = [request.headers for request in transport.requests]
    return (
        [each["amz-sdk-invocation-id"] for each in headers],
        [each["amz-sdk-request"] for each in headers],
        log,
    )


def second(log, after):
    """Return the second of the day, rounded up, so long after a call began."""
    moment = log.request_started_at + timedelta(seconds=after)
    return f"{moment + timedelta(seconds=1, microseconds=-1):%Y%m%dT%H%M%SZ}"


async def test_id_is_that_of_the_call():
    """All attempts have the same UUID, and the next call has another one."""
    first, *_ = await sent([503, 503, 200], ALWAYS)
    other, *_ = await sent([200], ALWAYS)

    assert [first[0]] * 3 == first
    assert 4 == UUID(first[0]).version
    assert first[0] != other[0]


async def test_id_of_the_caller_stays():
    """Other services may know the id already."""
    transport = ScriptedTransport([200])
    await response_of(
        session(transport, sdk_headers),
        headers={"Amz-Sdk-Invocation-Id": "mine", "X-A": "1"},
    )
    headers = transport.requests[0].headers

    assert ["mine"] == headers.getall("amz-sdk-invocation-id")
    assert "1" == headers["X-A"]


@pytest.mark.parametrize(
    ("strategy", "settings", "most"),
    [
        (ALWAYS, {}, 10),
        (ALWAYS, {"max_total_attempts": 4}, 4),
        (StandardRetryStrategy(), {}, 3),
        (SimpleRetryStrategy(max_attempts=5), {}, 5),
        (SimpleRetryStrategy(max_attempts=5), {"max_total_attempts": 4}, 4),
    ],
)
async def test_attempts_are_counted_up_to_what_may_be_made(strategy, settings, most):
    """The lower of the strategy's limit and the client's is said."""
    _, told, _ = await sent([503, 200], strategy, **settings)

    assert [f"attempt=1; max={most}", f"attempt=2; max={most}"] == told


@pytest.mark.parametrize("known", [{}, {"max_attempts": None}])
async def test_strategy_of_ones_own_need_not_know_its_limit(known):
    """Then it is that of the retrying client."""
    simple = SimpleRetryStrategy()
    strategy = SimpleNamespace(
        acquire_initial_retry_token=simple.acquire_initial_retry_token,
        refresh_retry_token_for_retry=simple.refresh_retry_token_for_retry,
        record_success=simple.record_success,
        **known,
    )
    _, told, _ = await sent([200], strategy)

    assert ["attempt=1; max=10"] == told


async def test_limit_that_is_exceeded_is_not_said():
    """A decorator outside sends twice through a client that is to send once."""

    def twice(delegate):
        class Twice:
            def __init__(self):
                self.delegate = delegate

            async def execute(self, ctx, request):
                (await delegate.execute(ctx, request)).release()
                return await delegate.execute(ctx, request)

        return Twice()

    _, told, _ = await sent([503, 200], ALWAYS, outside=twice, max_total_attempts=1)

    assert ["attempt=1; max=1", "attempt=2"] == told


async def test_time_to_live_is_that_of_the_call():
    """Each attempt has what is left, so all name the same second."""
    await asyncio.sleep(10.0)  # the clock of the loop begins at 0
    backoff = Backoff.fixed(2.0)
    strategy = RetryStrategy.on_server_error_status(backoff)
    _, told, log = await sent([503, 200], strategy, limit=7.5)
    ttl = second(log, 7.5)

    assert [f"attempt=1; max=10; ttl={ttl}", f"attempt=2; max=10; ttl={ttl}"] == told


async def test_time_to_live_is_that_of_the_attempt_where_it_is_shorter():
    """The second attempt began 2 s later."""
    strategy = RetryStrategy.on_server_error_status(Backoff.fixed(2.0))
    _, told, log = await sent([503, 200], strategy, limit=60.0, attempt_timeout=3.0)

    assert [second(log, 3.0), second(log, 5.0)] == [
        text.rpartition("ttl=")[2] for text in told
    ]


@pytest.mark.parametrize(
    ("begins", "ends"),
    [
        ("03:59:59.990000", "040000"),
        ("03:59:59.990001", "040001"),
        ("03:59:59.990319", "040001"),
        ("04:00:00.000000", "040001"),
        ("04:00:00.990000", "040001"),
    ],
)
async def test_time_to_live_is_not_over_while_the_attempt_may_run(begins, ends):
    """The end of a deadline of 10 ms is rounded up, even a microsecond past."""
    set_time_of_day(datetime.fromisoformat(f"2026-11-22T{begins}Z").timestamp())
    _, told, _ = await sent([200], ALWAYS, limit=0.01)

    assert [f"attempt=1; max=10; ttl=20261122T{ends}Z"] == told


async def test_deadline_in_a_distant_future_is_none():
    """No date is that far away."""
    _, told, _ = await sent([200], limit=1e300)

    assert ["attempt=1"] == told


async def test_headers_that_are_none_fail_in_the_line_of_the_attempt(caplog):
    """A logger further out is told what was wrong with them."""
    added = sdk_headers, LoggingClient.new_decorator()
    async with session([], *added) as client:
        with pytest.raises(TypeError):
            await client.get(URL, headers=7)

    assert "cause=TypeError" in caplog.messages[-1]
