"""The load of an endpoint after a session was closed, or a connection."""

from __future__ import annotations

import aiohttp
import pytest
from chains import connected
from until import until

from aioretry_smithy import EndpointGroup

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"


def load(group):
    return [state.in_flight for state in group.states.values()]


async def test_response_of_a_closed_session_is_no_load(serve):
    """Though a variable still has it, and nobody has read it."""
    group = EndpointGroup.of(await serve([HEAD, b"ord", 30.0]))
    async with connected(group) as client:
        response = await client.get("/")
        before = load(group)
    after = load(group)
    response.close()

    assert ([1], [0], [0]) == (before, after, load(group))


async def test_unread_response_whose_server_hung_up_is_no_load(serve):
    """Nor is it taken off twice when it is read."""
    group = EndpointGroup.of(await serve([HEAD, b"ord", None]))
    async with connected(group) as client:
        response = await client.get("/")
        await until(lambda: load(group) == [0])
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()

        assert [0] == load(group)
