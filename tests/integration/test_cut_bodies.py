"""Bodies of real responses that are cut off on purpose."""

import aiohttp
import pytest
from chains import connected
from until import until

from aioretry_smithy import RequestLog, capture_logs
from aioretry_smithy.testing import FaultInjectingClient, InjectedFault

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n"
LARGE = [HEAD, *[b"x" * 50_000] * 4]
SLOW = [HEAD, *(part for _ in range(4) for part in (b"x" * 50_000, 0.02))]


def cutting(url, after, **settings):
    fault = InjectedFault.cut_body(after=after)
    return connected(url, FaultInjectingClient.new_decorator(fault), **settings)


async def read_into(seen, content):
    async for chunk in content.iter_any():
        seen.append(chunk)


@pytest.mark.parametrize("parts", [LARGE, SLOW], ids=["at once", "slowly"])
@pytest.mark.parametrize("after", [0, 10, 70_000])
async def test_body_is_cut_where_it_should_be(serve, parts, after):
    """Exactly so many bytes arrive, then it fails, and the log says the same."""
    async with cutting(await serve(parts), after) as session, session.get("/") as got:
        seen = []
        with pytest.raises(aiohttp.ClientPayloadError) as caught:
            await read_into(seen, got.content)
        log = RequestLog.of(caught.value)

    assert b"x" * after == b"".join(seen)
    assert (200, after, caught.value) == (
        log.response_status,
        log.response_length,
        log.response_cause,
    )


@pytest.mark.parametrize("parts", [LARGE, SLOW], ids=["at once", "slowly"])
async def test_connection_is_closed(serve, parts):
    """It is not used again, and not left over."""
    async with cutting(await serve(parts), 10) as session:
        with pytest.raises(aiohttp.ClientPayloadError):
            async with session.get("/") as response:
                await response.read()

        assert None is response.connection
        assert not session.connector._conns
        assert not session.connector._acquired


async def test_body_that_was_here_before_it_was_read_is_cut_all_the_same(serve):
    """The log, which had the end of the body, takes that back at once."""
    small = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"
    with capture_logs() as logs:
        url = await serve([small, 0.01, b"orders"])
        async with cutting(url, 2) as session, session.get("/") as response:
            await until(lambda: logs[0].response_cause is not None)
            cause = logs[0].response_cause
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()

    assert "cut off after 2 bytes" in str(cause)
    assert 2 == logs[0].response_length
