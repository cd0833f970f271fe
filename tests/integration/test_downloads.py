"""Downloads that take longer than a call may: cut where aiohttp would cut them."""

from __future__ import annotations

import aiohttp
import pytest
from aiohttp import ClientTimeout
from chains import connected, retrying

from aioretry_smithy import RetryStrategy, SessionBuilder, decorate

pytestmark = pytest.mark.slow

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"
SLOW = [HEAD, *(part for byte in b"orders" for part in (0.05, bytes([byte])))]
LIMIT = ClientTimeout(total=0.15)
RETRYING = retrying(RetryStrategy.failsafe())


def bare():
    return aiohttp.ClientSession(timeout=LIMIT)


def decorated():
    return decorate(bare(), RETRYING)


def built():
    return connected(None, RETRYING, timeout=LIMIT)


def limited():
    return SessionBuilder().decorator(RETRYING).response_timeout(0.15).build()


async def download(session, url, **options):
    async with session, session.get(url, **options) as response:
        return await response.read()


@pytest.mark.parametrize("make", [bare, decorated, built])
async def test_limit_of_silence_replaces_a_limit_of_aiohttps(serve, make):
    """A chain cuts no download that aiohttp alone would not cut."""
    url = await serve(SLOW)

    assert b"orders" == await download(
        make(), url, timeout=ClientTimeout(sock_read=5.0)
    )


@pytest.mark.parametrize("make", [bare, decorated, built])
async def test_limit_of_aiohttps_cuts_a_download(serve, make):
    """Where the request says nothing."""
    url = await serve(SLOW)
    with pytest.raises(TimeoutError):
        await download(make(), url)


async def test_limit_set_through_us_cuts_a_download(serve):
    """A limit of silence does not lift it, a lifted limit does."""
    url = await serve(SLOW)
    with pytest.raises(TimeoutError):
        await download(limited(), url, timeout=ClientTimeout(sock_read=5.0))
    lifted = ClientTimeout(total=0, sock_read=5.0)

    assert b"orders" == await download(limited(), url, timeout=lifted)
