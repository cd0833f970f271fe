"""A request that was answered is not sent again because something refused the rest."""

from contextlib import suppress

import pytest
from aiohttp import ClientTimeout, web
from chains import SAFELY, connected, retrying
from races import hedging

from aioretry_smithy import (
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RateLimit,
    RateLimitingClient,
    RequestLog,
    RetryingRpcClient,
    UnprocessedRequestError,
    client_decorator,
    is_unprocessed,
    rpc,
)


class Orders:
    """A server that wants a fresh token."""

    def __init__(self):
        self.requests = 0

    async def respond(self, request):
        self.requests += 1
        await request.read()
        return web.Response(status=401, text="expired")


@client_decorator
async def refresh(delegate, ctx, request):
    """Send once more, and hold the first answer meanwhile."""
    response = await delegate.execute(ctx, request)
    if response.status != 401:
        return response
    try:
        return await delegate.execute(ctx, request)
    finally:
        response.release()


def one_turn():
    return RateLimitingClient.new_decorator(RateLimit(1, per=60.0), timeout=0.0)


def one_place():
    limit = ConcurrencyLimit.fixed(1)

    @client_decorator
    async def to_the_end(delegate, ctx, request):
        """Hold the place for as long as the answer is in hand."""
        response = await delegate.execute(ctx, request)
        held.append(limit._try_enter(0.0))
        return response

    held = []
    limiting = ConcurrencyLimitingClient.new_decorator(limit, max_pending=0)
    return lambda delegate: to_the_end(limiting(delegate))


CHAINS = {
    "retries": (retrying(SAFELY),),
    "no retries": (),
    "hedges": (hedging(5.0),),
    "hedges and retries": (hedging(5.0), retrying(SAFELY)),
}


@pytest.mark.parametrize("refusing", [one_turn, one_place])
@pytest.mark.parametrize("outside", CHAINS.values(), ids=CHAINS)
async def test_a_post_that_was_answered_is_not_sent_again(serving, refusing, outside):
    """The decorator's second request met a limit; the server has the first one."""
    orders = Orders()
    server = await serving(orders.respond)
    client = connected(server.make_url("/"), refusing(), refresh, *outside)
    async with client:
        with pytest.raises(UnprocessedRequestError) as caught:
            await client.post("/orders", data=b"one", timeout=ClientTimeout(30.0))

        assert 1 == orders.requests
        assert not is_unprocessed(caught.value)
        assert RequestLog.of(caught.value).sent


async def test_a_post_among_very_many_calls_of_a_function_is_not_sent_again(serving):
    """The log keeps the first hundred calls; what the others sent counts, too."""
    orders = Orders()
    server = await serving(orders.respond)
    refusing = connected(server.make_url("/"), refuse)

    @rpc(RetryingRpcClient.new_decorator(SAFELY), idempotent=False)
    async def order():
        for _ in range(100):
            with suppress(UnprocessedRequestError):
                await refusing.get("/stock")
        async with session.post("/orders", data=b"one"):
            pass
        await refusing.get("/stock")

    async with refusing, connected(server.make_url("/")) as session:
        with pytest.raises(UnprocessedRequestError):
            await order()

    assert 1 == orders.requests


@client_decorator
async def refuse(delegate, ctx, request):
    """Send nothing."""
    raise UnprocessedRequestError("closed today")
