"""fsspec asks a coroutine function for its session, on the loop that it will use."""

import asyncio

import pytest

pytest.importorskip("fsspec")

from fsspec.implementations.http import HTTPFileSystem


@pytest.fixture(autouse=True)
def _close_what_stays_open():
    """Let no file system keep its session open when the server has gone."""
    yield
    for files in list(HTTPFileSystem._cache.values()):
        if not files.asynchronous:
            files.close_session(files.loop, files._session)
    HTTPFileSystem.clear_instance_cache()


async def test_file_is_read_again_in_the_thread_of_the_library(
    example, flaky, start, attempts
):
    """The session lives on a loop of the library's; its logs are found from here."""
    flaky.answers["/file"] = [1, 2]
    url = await start(flaky)

    content = await asyncio.to_thread(example("with_fsspec").read, f"{url}/file")

    assert b"[1, 2]" == content
    assert [("GET", "/file", b"")] * 2 == flaky.requests
    assert [2] == attempts()


async def test_file_is_read_again_in_a_coroutine(example, flaky, start, attempts):
    """The same on the caller's own loop."""
    flaky.answers["/file"] = [1, 2]
    url = await start(flaky)

    content = await example("with_fsspec").read_in_a_coroutine(f"{url}/file")

    assert b"[1, 2]" == content
    assert [("GET", "/file", b"")] * 2 == flaky.requests
    assert [2] == attempts()
