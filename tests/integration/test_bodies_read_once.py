"""A body that can be read once goes out once, whatever sends again."""

import aiohttp
import pytest
from chains import SAFELY, connected, retrying
from fault_server import End, FaultServer, answer, cut
from streamed_bodies import Once, Progress, fetch_token, form, pieces

from aioretry_smithy import RefreshingClient, ResumingClient, client_decorator

CONTENT = bytes(range(256)) * 400

ONCE = {
    "progress of a generator": lambda: Progress(pieces(CONTENT)),
    "progress of a progress": lambda: Progress(Progress(pieces(CONTENT))),
    "once": lambda: Once([CONTENT]),
    "part of a form": lambda: form(Progress(pieces(CONTENT))),
}
every_body = pytest.mark.parametrize("make", ONCE.values(), ids=ONCE)


@client_decorator
async def to_nobody_first(delegate, ctx, request):
    """Send the first attempt to a port where nobody listens."""
    if ctx.attempt == 1:
        request = request.replace(url="http://127.0.0.1:1/")
    return await delegate.execute(ctx, request)


@every_body
async def test_what_was_never_read_goes_out_later(make):
    """The port where nobody listens has read nothing of it."""
    async with (
        FaultServer() as server,
        connected(server.url, to_nobody_first, retrying(SAFELY)) as session,
        session.put("/", data=make()) as response,
    ):
        pass

    assert 200 == response.status
    assert CONTENT in server.bodies[0]


@every_body
async def test_refused_token_is_answered_with_the_refusal(make):
    """A POST is not sent again, empty, with another token."""
    async with (
        FaultServer([answer(401)]) as server,
        connected(server.url, RefreshingClient.new_decorator(fetch_token)) as session,
        session.post("/", data=make()) as response,
    ):
        pass

    assert 401 == response.status
    assert 1 == len(server.requests)


@every_body
async def test_redirect_ends_in_an_error(make):
    """As from aiohttp alone, or earlier; the second hop gets nothing."""
    there = answer(307, b"", "Location: /there")
    async with (
        FaultServer([there]) as server,
        connected(server.url, retrying()) as session,
    ):
        with pytest.raises(aiohttp.ClientError):
            await session.post("/", data=make())

    assert 1 == len(server.bodies)


@every_body
async def test_download_is_not_resumed_with_an_empty_body(make):
    """A GET that has a body of its own is asked once."""
    cut_off = cut(
        b'HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: "a"\r\n\r\n12345',
        end=End.RESET,
    )
    async with (
        FaultServer([cut_off]) as server,
        connected(server.url, ResumingClient.new_decorator()) as session,
    ):
        with pytest.raises(aiohttp.ClientError):
            async with session.get("/", data=make()) as response:
                await response.read()

    assert 1 == len(server.bodies)
