"""Calls by JSON-RPC, whose failures come with the status 200."""

from __future__ import annotations

import pytest
from aiohttp import web
from chains import connected, retrying

from aioretry_smithy import (
    Backoff,
    RetryingRpcClient,
    RetryRuleWithContent,
    RetryStrategy,
    RetryStrategyWithContent,
    capture_logs,
    rpc,
)

NOW = Backoff.without_delay()
SAFELY = retrying(RetryStrategy.failsafe(NOW), max_total_attempts=3)
BUSY, NOT_FOUND = -32000, -32601


def code_of(answer):
    return (answer or {}).get("error", {}).get("code")


class RetryWhileBusy(RetryStrategyWithContent):
    """A strategy of one's own, which gets the answer as a dict."""

    def should_retry(self, ctx, cause, content):
        return NOW if code_of(content) == BUSY else None


RULE = RetryRuleWithContent(
    on_content=lambda answer: code_of(answer) == BUSY, backoff=NOW
)


@pytest.fixture
async def server(serving):
    """Answers each method as scripted, and always with 200."""

    async def answer(request):
        call = await request.json()
        answers[call["method"]].append(call["id"])
        is_busy = len(answers["orders.list"]) < 3
        errors = {"orders.list": BUSY if is_busy else None, "orders.lost": NOT_FOUND}
        if (code := errors[call["method"]]) is not None:
            error = {"code": code, "message": "no"}
            return web.json_response({"id": call["id"], "error": error})
        return web.json_response({"id": call["id"], "result": [1, 2]})

    answers = {"orders.list": [], "orders.lost": []}
    running = await serving(answer)
    running.ids = answers
    return running


def caller(strategy):
    """Return a function that makes a call by JSON-RPC, an id for each attempt."""
    ids = iter(range(1, 100))

    @rpc(RetryingRpcClient.new_decorator(strategy, 5, 5.0), name="JSON-RPC")
    async def call(session, method):
        request = {"jsonrpc": "2.0", "method": method, "id": next(ids)}
        async with session.post("/rpc", json=request) as response:
            return await response.json()

    return call


@pytest.mark.parametrize("strategy", [RULE, RetryWhileBusy()])
async def test_call_whose_answer_says_busy_is_made_again(server, strategy):
    """The session sees three successes, the function two failures and one."""
    call = caller(strategy)

    async with connected(server.make_url("/"), SAFELY) as session:
        with capture_logs() as logs:
            answer = await call(session, "orders.list")

    (log,) = logs
    assert [1, 2] == answer["result"]
    assert [1, 2, 3] == server.ids["orders.list"]
    assert (3, None) == (log.total_attempts, log.response_cause)
    assert [[200], [200], [200]] == [
        [request.response_status for request in attempt.calls]
        for attempt in log.children
    ]


@pytest.mark.parametrize("strategy", [RULE, RetryWhileBusy()])
async def test_error_that_a_retry_does_not_mend_is_handed_over(server, strategy):
    """Once, as the answer that it is."""
    async with connected(server.make_url("/"), SAFELY) as session:
        answer = await caller(strategy)(session, "orders.lost")

    assert NOT_FOUND == code_of(answer)
    assert [1] == server.ids["orders.lost"]
