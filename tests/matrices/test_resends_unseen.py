"""Nobody is asked or told when the transport sends again, unless it breaks for good."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from chains import connected
from fault_server import Fault, answer, response
from parity import SOON, retrying, stale_pool, status_of

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitBreakerListener,
    CircuitBreakerStrategy,
    ConcurrencyLimitingClient,
    ContentPreviewingClient,
    RateLimit,
    RateLimitingClient,
    RequestLog,
    RetryLimiter,
    RetryStrategy,
    RetryStrategyWithContent,
    client_decorator,
)

BROKEN = (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)


class Told(RetryLimiter):
    """Notes what it is asked and told."""

    def __init__(self):
        self.notes = []

    def acquire(self, ctx, cause):
        self.notes.append("acquire")
        return True

    def release(self, ctx):
        self.notes.append("release")

    def on_retry_end(self, ctx):
        self.notes.append("end")

    def on_success(self, ctx):
        self.notes.append("success")

    def on_failure(self, ctx, cause):
        self.notes.append("failure")


class Asked(RetryStrategy):
    """Notes the causes that it is asked about, and wants no retry."""

    def __init__(self):
        self.causes = []

    def should_retry(self, ctx, cause):
        self.causes.append(cause)


class AskedWithContent(RetryStrategyWithContent):
    """Notes the content that it is asked about, and wants no retry."""

    def __init__(self):
        self.contents = []

    def should_retry(self, ctx, cause, content):
        self.contents.append(content)


def session_with(*chain):
    """Make what makes sessions."""
    return lambda url: connected(url, *chain)


@pytest.mark.parametrize(
    ("stale", "notes"),
    [(3, ["success"]), (4, ["failure", "acquire", "success", "end"])],
)
async def test_limiter_is_told_of_attempts_alone(stale, notes):
    """Four requests that break for good are one failure, and fewer are none."""
    limiter = Told()
    chain = retrying(RetryStrategy.failsafe(SOON), limiter=limiter)
    async with stale_pool(session_with(chain), stale) as (_, session):
        limiter.notes.clear()
        status = await status_of(session.get("/x"))

    assert 200 == status
    assert notes == limiter.notes


async def test_breaker_counts_the_answer_alone():
    """Its strategy and its listeners hear of nothing else."""
    causes, told = [], []

    class Judge(CircuitBreakerStrategy):
        def should_report_as_success(self, ctx, cause):
            causes.append(cause)
            return cause is None

    class Listener(CircuitBreakerListener):
        def on_event_count_updated(self, circuit_breaker, event_count):
            told.append(event_count.failure)

        def on_state_changed(self, circuit_breaker, state):
            told.append(state)

    breaker = CircuitBreaker(
        minimum_request_threshold=0,
        failure_rate_threshold=0.01,
        counter_sliding_window=60.0,
        listeners=[Listener()],
    )
    inside = CircuitBreakerClient.new_decorator(breaker, Judge())
    async with stale_pool(session_with(inside, retrying(RetryStrategy.never())), 3) as (
        _,
        session,
    ):
        causes.clear()
        status = await status_of(session.get("/x"))

    assert 200 == status
    assert [None] == causes
    assert {0} >= {*told}
    assert (4, 0) == (breaker.event_count.success, breaker.event_count.failure)


async def test_open_circuit_is_not_asked_for_what_is_sent_again():
    """A half-open one has let the trial through, which may take four requests."""
    breaker = CircuitBreaker(minimum_request_threshold=0, circuit_open_window=0.01)
    inside = CircuitBreakerClient.new_decorator(breaker)
    chain = session_with(inside, retrying(RetryStrategy.never()))
    async with stale_pool(chain, 0) as (server, session):
        assert 200 == await status_of(session.get("/x"))
        server.scripts["/x"] = [answer(503)] * 3
        for _ in range(3):
            await status_of(session.get("/x"))
        opened = breaker.state
        server.scripts.clear()
        await asyncio.sleep(0.02)
        server.leave_stale()
        status = await status_of(session.get("/x"))

    assert ("OPEN", "CLOSED") == (opened.name, breaker.state.name)
    assert 200 == status


@pytest.mark.parametrize("kind", [Asked, AskedWithContent])
async def test_strategy_is_asked_once(kind):
    """About the answer."""
    strategy = kind()
    async with stale_pool(session_with(retrying(strategy)), 3) as (_, session):
        seen = strategy.causes if kind is Asked else strategy.contents
        seen.clear()
        status = await status_of(session.get("/x"))

    assert 200 == status
    assert [None if kind is Asked else b"/x"] == seen


async def test_strategy_is_asked_once_about_what_broke_for_good():
    """About the last of four requests."""
    strategy = Asked()
    async with stale_pool(session_with(retrying(strategy)), 4) as (_, session):
        strategy.causes.clear()
        with pytest.raises(BROKEN) as e:
            await session.get("/x")

    assert [e.value] == strategy.causes


async def test_rate_is_not_used_up():
    """What is sent again needs no other turn."""
    limit = RateLimit(1, per=1000.0, burst=2)
    inside = RateLimitingClient.new_decorator(limit, timeout=0.01)
    chain = session_with(inside, retrying(RetryStrategy.never()))
    async with stale_pool(chain) as (server, session):
        status = await status_of(session.get("/x"))

    assert 200 == status
    assert 2 == len(server.to("/x"))


async def test_place_of_a_limit_is_kept():
    """One place serves all requests of an attempt, and is free again then."""
    inside = ConcurrencyLimitingClient.new_decorator(1, timeout=0.01)
    chain = session_with(inside, retrying(RetryStrategy.never()))
    async with stale_pool(chain) as (_, session):
        status = await status_of(session.get("/x"))
        again = await status_of(session.get("/y"))

    assert (200, 200) == (status, again)


async def test_decorator_that_sends_twice_has_each_of_them_sent_again():
    """Each time its own connection may be stale."""

    @client_decorator
    async def twice(delegate, ctx, request):
        first = await delegate.execute(ctx, request)
        await first.read()
        server.leave_stale()
        return await delegate.execute(ctx, request)

    chain = session_with(twice, retrying(RetryStrategy.never()))
    async with stale_pool(chain, 0) as (server, session):
        status = await status_of(session.get("/x"))

    assert 200 == status
    assert 3 == len(server.to("/x"))


async def test_content_is_previewed_of_the_answer():
    """The log has the body of the request that counts."""
    chain = session_with(
        ContentPreviewingClient.new_decorator(100), retrying(RetryStrategy.never())
    )
    answered = response(200, b"answered", "Content-Type: text/plain")
    async with stale_pool(chain) as (server, session):
        server.scripts["/x"] = [Fault(send=(answered,))]
        async with session.put("/x", data="sent") as got:
            await got.read()
        log = RequestLog.of(got)

    previews = [child.request_content_preview for child in log.children]
    assert 200 == got.status
    assert ["sent", "sent"] == previews
    assert "answered" == log.children[-1].response_content_preview
