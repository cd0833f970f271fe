"""The short lane: which chains have one, and how it ends."""

from __future__ import annotations

import gc

import aiohttp
import pytest

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    DecoratingClient,
    HttpRequest,
    LoggingClient,
    RequestLog,
    RetryBudget,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
    new_response,
)

URL = "http://example.com/"


class Budget(RetryBudget):
    """One that might do more."""


@pytest.fixture
def answered(monkeypatch):
    """Let aiohttp answer every request at once."""

    async def _request(self, method, url, **options):
        return new_response(HttpRequest(method, url), body=b"fine")

    monkeypatch.setattr(aiohttp.ClientSession, "_request", _request)


def build(*decorators):
    builder = SessionBuilder()
    for decorator in decorators:
        builder.decorator(decorator)
    return builder.build()


@pytest.mark.parametrize(
    "decorator",
    [
        RetryingClient.new_decorator(RetryStrategy.failsafe(), limiter=Budget()),
        RetryingClient.new_decorator(
            RetryStrategy.failsafe(), limiter=Budget.per_host()
        ),
        RetryingClient.new_decorator(
            RetryStrategy.on_unprocessed() | RetryStrategy.on_server_error_status()
        ),
        LoggingClient.new_decorator(request_log_level=lambda log: 10),
    ],
)
async def test_client_that_may_do_more_sees_the_call(decorator, answered):
    """The call succeeds in either lane."""
    async with build(decorator) as session:
        response = await session.get(URL)

        assert b"fine" == await response.read()
        assert 1 == RequestLog.of(response).total_attempts


@pytest.mark.parametrize("retries", [False, True])
async def test_clock_that_raises_after_a_success_ends_the_call(retries, answered):
    """The response is closed, and the log has the error."""
    broken = []

    def clock():
        if broken:
            raise LookupError("no time")
        return 0.0

    breaker = CircuitBreaker(clock=clock)
    retrying = RetryingClient.new_decorator(RetryStrategy.failsafe())
    breaking = CircuitBreakerClient.new_decorator(breaker)
    async with build(breaking, *[retrying] * retries) as session:
        broken.append(True)
        with pytest.raises(LookupError, match="no time") as caught:
            await session.get(URL)

    assert "LookupError('no time')" == repr(RequestLog.of(caught.value).response_cause)


async def test_session_that_is_gone_is_closed(answered):
    """A reference to its method alone does not keep the session."""
    session = build()
    request = session._request
    await session.close()
    del session
    gc.collect()

    with pytest.raises(RuntimeError, match="Session is closed"):
        await request("GET", URL)


class Keeper(DecoratingClient):
    """Keeps the context and the request of each call."""

    async def execute(self, ctx, request):
        response = await super().execute(ctx, request)
        self.kept = ctx, request
        return response


def build_kept(keeper):
    def decorator(delegate):
        keeper.append(Keeper(delegate))
        return keeper[0]

    return build(RetryingClient.new_decorator(RetryStrategy.failsafe()), decorator)


async def test_context_that_is_kept_has_the_log_of_its_call(answered):
    """Asked for first or last, it is the one that the response leads to."""
    for first in ("context", "response"):
        keeper = []
        async with build_kept(keeper) as session:
            response = await session.post(URL, json={"a": 1})
        ctx, _ = keeper[0].kept
        if first == "context":
            assert ctx.log is RequestLog.of(response)
        else:
            assert RequestLog.of(response) is ctx.log
        assert ctx.log.is_complete
        assert ctx.log.request.options == {"data": None, "json": None}
        assert [200] == [child.response_status for child in ctx.log.children]


async def test_request_that_is_kept_has_its_body(answered):
    """Only the log forgets it: a decorator may send it again."""
    keeper = []
    async with build_kept(keeper) as session:
        await session.post(URL, json={"a": 1})

    _, request = keeper[0].kept
    assert {"a": 1} == request.options["json"]


async def test_context_has_nothing_else(answered):
    """A name that is misspelt is an error as ever."""
    keeper = []
    async with build_kept(keeper) as session:
        await session.get(URL)

    ctx, _ = keeper[0].kept
    with pytest.raises(AttributeError, match="logs"):
        ctx.logs  # noqa: B018


async def test_timeout_that_is_none_takes_the_ordinary_lane(answered):
    """It is for aiohttp to complain of."""
    keeper = []
    async with build_kept(keeper) as session:
        timeout = aiohttp.ClientTimeout(total="soon")
        response = await session.get(URL, timeout=timeout)

    assert 200 == response.status
    assert RequestLog.of(response).response_timeout is None


@pytest.mark.parametrize("looks", [False, True])
async def test_clock_that_raises_inside_a_decorator_ends_the_call(looks, answered):
    """The log has the answer of the attempt and the error of the call."""
    broken = []

    def clock():
        if broken:
            raise LookupError("no time")
        return 0.0

    class Looks(DecoratingClient):
        async def execute(self, ctx, request):
            assert not looks or ctx.log.response_status is None
            return await super().execute(ctx, request)

    breaking = CircuitBreakerClient.new_decorator(CircuitBreaker(clock=clock))
    retrying = RetryingClient.new_decorator(RetryStrategy.never())
    async with build(breaking, retrying, Looks) as session:
        broken.append(True)
        with pytest.raises(LookupError, match="no time") as caught:
            await session.get(URL)

    assert "LookupError('no time')" == repr(RequestLog.of(caught.value).response_cause)


async def test_mock_that_raises_at_once_is_an_attempt_that_failed(monkeypatch):
    """Many mocks raise when they are called, not when they are awaited."""
    answers = [aiohttp.ClientConnectionError("cut"), aiohttp.ClientConnectionError()]

    def _request(self, method, url, **options):
        if answers:
            raise answers.pop()
        return answered_later(HttpRequest(method, url))

    async def answered_later(request):
        return new_response(request, body=b"fine")

    monkeypatch.setattr(aiohttp.ClientSession, "_request", _request)
    retrying = RetryingClient.new_decorator(
        RetryStrategy.failsafe(Backoff.without_delay())
    )
    async with build(retrying) as session, session.put(URL, data=b"x") as response:
        log = RequestLog.of(response)

    assert (200, 3) == (response.status, log.total_attempts)
    assert isinstance(log.children[0].response_cause, aiohttp.ClientConnectionError)
