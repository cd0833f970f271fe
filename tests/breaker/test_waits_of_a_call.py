"""The waits of one call at circuits, which add up over its attempts."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from chains import NOW, SAFELY, URL, now, retrying, session
from circuits import RestartingServer, breaker_of, end_of, waiting_at

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    CircuitBreakerClient,
    CircuitBreakerRpcClient,
    FailFastError,
    HedgingClient,
    RequestLog,
    RetryingRpcClient,
    RetryRule,
    RetryStrategy,
    SessionBuilder,
    client_decorator,
    rpc,
)

KEEP_TRYING = RetryRule(statuses=[503], backoff=NOW)
A_SECOND_LATER = RetryRule(statuses=[503], backoff=Backoff.fixed(1.0))


async def test_attempts_share_one_patience():
    """Each of which is the next trial, and fails."""
    server = RestartingServer(1e9)
    breaker = breaker_of(2.0)
    chain = waiting_at(breaker, 5.0), retrying(KEEP_TRYING)
    async with session(server.transport(), *chain) as client:
        assert (5.0, FailFastError) == await end_of(client)

    assert [0.0, 2.0, 4.0] == server.asked


async def test_one_that_has_waited_so_long_is_refused_at_once():
    """It stands in no line."""
    server = RestartingServer(1e9)
    breaker = breaker_of(5.0)
    chain = waiting_at(breaker, 5.0), retrying(KEEP_TRYING)
    async with session(server.transport(), *chain) as client:
        breaker.on_failure()
        with pytest.raises(FailFastError) as caught:
            await client.get(URL)

    assert ([5.0], 5.0, None) == (server.asked, now(), breaker._line)
    log = RequestLog.of(caught.value)
    assert [5.0, 0.0] == [log.delay, log.children[0].delay]


async def test_what_passes_between_the_waits_is_none():
    """Attempts and backoffs have limits of their own."""
    server = RestartingServer(1e9, took=0.5)
    breaker = breaker_of(2.0)
    chain = waiting_at(breaker, 5.0), retrying(A_SECOND_LATER)
    async with session(server.transport(), *chain) as client:
        # Half of each window has passed when it begins to wait.
        assert (14.0, FailFastError) == await end_of(client)

    assert [0.0, 2.5, 5.0, 7.5, 10.0, 12.5] == server.asked


async def test_each_call_has_its_own():
    """Who comes later waits as long."""
    server = RestartingServer(8.0)
    breaker = breaker_of(2.0)
    chain = waiting_at(breaker, 5.0), retrying(KEEP_TRYING)
    async with session(server.transport(), *chain) as client:
        assert (5.0, FailFastError) == await end_of(client)
        assert (8.0, 200) == await end_of(client)


async def test_circuits_of_all_kinds_share_it():
    """Four seconds at that of the method, and one at that of the host."""
    server = RestartingServer(1e9)
    of_host, of_method = breaker_of(100.0), breaker_of(4.0)
    chain = (
        CircuitBreakerClient.new_per_host_decorator(
            lambda key: of_host, wait_for_ready=5.0
        ),
        CircuitBreakerClient.new_per_method_decorator(
            lambda key: of_method, wait_for_ready=6.0
        ),
    )
    async with session(server.transport(), *chain) as client:
        of_method.on_failure()
        of_host.on_failure()

        assert (5.0, FailFastError) == await end_of(client)
    assert [] == server.asked


async def test_hedges_that_wait_together_count_once():
    """And none of them waits for longer than the call may."""
    server = RestartingServer(1e9)
    breaker = breaker_of(100.0)
    chain = waiting_at(breaker, 5.0), HedgingClient.new_decorator(2.0, max_hedges=1)
    async with session(server.transport(), *chain) as client:
        breaker.on_failure()

        assert (5.0, FailFastError) == await end_of(client)
    assert [] == server.asked


async def test_a_wait_that_was_given_up_is_part_of_it():
    """By a decorator that sends the request anew."""
    breaker = breaker_of(100.0)

    @client_decorator
    async def impatient(delegate, ctx, request):
        with suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                return await delegate.execute(ctx, request)
        return await delegate.execute(ctx, request)

    async with session([], waiting_at(breaker, 5.0), impatient) as client:
        breaker.on_failure()

        assert (5.0, FailFastError) == await end_of(client)


@pytest.mark.parametrize("window", [2.0, 5.0])
async def test_functions_have_one_too(window):
    """In all their attempts."""
    breaker = breaker_of(window)
    rule = RetryRule(exceptions=[ConnectionError], backoff=NOW)

    @rpc(
        CircuitBreakerRpcClient.new_decorator(breaker, wait_for_ready=5.0),
        RetryingRpcClient.new_decorator(rule, attempt_timeout=1.0),
    )
    async def fetch():
        raise ConnectionError

    breaker.on_failure()
    with pytest.raises(FailFastError):
        await fetch()

    assert 5.0 == now()


async def test_the_time_of_an_attempt_of_a_function_counts_after_it():
    """Of one that hangs, too: it is cut when it has had all of it."""
    breaker = breaker_of(2.0)

    @rpc(
        CircuitBreakerRpcClient.new_decorator(breaker, wait_for_ready=5.0),
        RetryingRpcClient.new_decorator(
            RetryStrategy.never(), attempt_timeout=1.0, max_total_attempts=1
        ),
    )
    async def hang():
        await asyncio.Event().wait()

    breaker.on_failure()
    with pytest.raises(AttemptTimeoutError):
        await hang()

    assert 3.0 == now()


async def test_a_lone_caller_of_the_standard_chain_hears_in_time():
    """Though it is the next trial each time."""
    server = RestartingServer(1e9)
    builder = SessionBuilder.standard(logging=None, inside=[server.transport()])
    async with builder.build() as client:
        ends = [await end_of(client) for _ in range(4)]

    began = 0.0
    for end, result in ends:
        # Backoffs come on top.
        assert end - began <= 5.0 + 7.5
        assert result in {503, FailFastError}
        began = end


@pytest.mark.parametrize(
    ("asked", "sent", "source"),
    [(2, 3.0, "circuit_breaker"), (4, 4.0, "retry_after")],
)
async def test_what_a_server_asks_for_comes_first(asked, sent, source):
    """Then the rest of the window is waited for, if there is one."""
    busy = 503, {"Retry-After": f"{asked}"}, b""
    chain = waiting_at(breaker_of(3.0), 5.0), retrying(SAFELY)
    async with session([busy, 200], *chain) as client:
        response = await client.get(URL)

    first, _ = RequestLog.of(response).children
    assert (sent, sent, source) == (now(), first.delay, first.delay_source)
