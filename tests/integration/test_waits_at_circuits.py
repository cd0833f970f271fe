"""A server that is stopped and started again, and requests that wait for it."""

from download_server import FILE, DownloadServer, broken_at, download

from aioretry_smithy import (
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    ResumingClient,
    client_decorator,
)


async def test_each_part_of_a_download_may_wait():
    """Bytes have come since the last wait, so the server was there."""
    breaker = CircuitBreaker("files", circuit_open_window=0.1)

    @client_decorator
    async def while_it_is_away(delegate, ctx, request):
        breaker.enter_state(CircuitState.OPEN)
        return await delegate.execute(ctx, request)

    chain = (
        CircuitBreakerClient.new_decorator(breaker, wait_for_ready=0.25),
        while_it_is_away,
        ResumingClient.new_decorator(),
    )
    async with DownloadServer(*broken_at(5_000, 10_000, 15_000)) as server:
        body, log = await download(server.url, *chain)

    assert FILE == body
    assert 4 == len(log.children)
