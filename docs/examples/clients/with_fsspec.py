from typing import Any

import aiohttp
from fsspec.implementations.http import HTTPFileSystem

from aioretry_smithy import RetryingClient, RetryStrategy, SessionBuilder


async def get_client(**arguments: Any) -> aiohttp.ClientSession:
    return (
        SessionBuilder(**arguments)
        .decorator(RetryingClient.new_decorator(RetryStrategy.failsafe()))
        .build()
    )


def read(url: str) -> bytes:
    """Read a file; fsspec runs the session on a loop in a thread of its own."""
    return HTTPFileSystem(get_client=get_client).cat_file(url)


async def read_in_a_coroutine(url: str) -> bytes:
    """Read a file on the running loop."""
    files = HTTPFileSystem(get_client=get_client, asynchronous=True)
    async with await files.set_session():
        return await files._cat_file(url)
