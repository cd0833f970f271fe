"""Texts that aiohttp composes out of what others sent are told in our words."""

import asyncio
import logging
import re

import aiohttp
import pytest
from chains import SAFELY, connected, retrying
from hostile_answers import views_of

from aioretry_smithy import LoggingClient, capture_logs

pytest.importorskip("rich", reason="needs the extra cli")

MARK = "hunter2"
TWICE = retrying(SAFELY, max_total_attempts=2)
HEAD = (
    f"HTTP/1.1 401 {MARK} Go\r\nSet-Cookie: sid={MARK}\r\nX-Auth: {MARK}\r\n"
    f"X-Place: {MARK}\r\n"
).encode()
CUT_HEAD = "ServerDisconnectedError: Server disconnected in the head, HTTP/1.1 401"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
NO_ANSWER = {
    "cut head": (HEAD, CUT_HEAD),
    "no version": (
        f"{MARK} HTTP\r\n\r\n".encode(),
        "ClientResponseError: the answer cannot be read: ",
    ),
    "no status": (
        f"HTTP/1.1 {MARK}\r\n\r\n".encode(),
        "ClientResponseError: the answer cannot be read: ",
    ),
    "no SSH": (
        f"SSH-2.0-{MARK}\r\n\r\n".encode(),
        "ClientResponseError: the answer cannot be read: ",
    ),
    "a bad header": (
        f"HTTP/1.1 200 OK\r\nSid {MARK}: 1\r\n\r\n".encode(),
        "ClientResponseError: the answer cannot be read: ",
    ),
    "a bad chunk": (
        CHUNKED + f"{MARK}\r\n".encode(),
        "ClientResponseError: the answer cannot be read: ",
    ),
    "a cut chunk": (
        (CHUNKED, 0.05, b"2\r\n"),
        "ClientPayloadError: Response payload is not completed: ",
    ),
    "a long line": (
        f"HTTP/1.1 200 OK\r\nX-A: {MARK * 3000}\r\n\r\n".encode(),
        "ClientResponseError: ",
    ),
}


def showing(views):
    """Return the names of the views that show the secret."""
    return [name for name, text in views.items() if MARK in text]


@pytest.mark.parametrize(("said", "told"), NO_ANSWER.values(), ids=NO_ANSWER)
async def test_bytes_of_a_server_are_in_no_view(serve, said, told, tmp_path, caplog):
    """A head that ends too early or cannot be read is told without what is in it."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")
    parts = said if isinstance(said, tuple) else (said,)
    url = await serve([*parts, 0.05, None])
    decorators = LoggingClient.new_decorator(), TWICE, LoggingClient.new_decorator()
    with capture_logs() as logs:
        async with connected(url, *decorators) as client:
            with pytest.raises(aiohttp.ClientError):
                async with client.get("/") as response:
                    await response.read()
    (log,) = logs
    views = views_of(log, tmp_path)

    assert [] == showing({**views, "lines": caplog.text})
    assert log.to_dict()["response_cause"].startswith(told)


async def test_what_cannot_be_read_says_what_it_was(serve):
    """The words of the parser stay: they quote nothing."""
    url = await serve([f"SSH-2.0-{MARK}\r\n\r\n".encode(), None])
    with capture_logs() as logs:
        async with connected(url) as client:
            with pytest.raises(aiohttp.ClientResponseError):
                await client.get("/")

    said = logs[0].to_dict()["response_cause"]
    # Each release and each of the two parsers of aiohttp has words of its own.
    assert re.fullmatch(
        "ClientResponseError: the answer cannot be read: (Bad|Expected) [A-Za-z/,: ]+",
        said,
    )


class Reading:
    """A body that fails while it is read."""

    def __init__(self, error):
        self._error = error

    async def __aiter__(self):
        yield b"a"
        raise self._error


class VaultError(Exception):
    """An error of the user's own whose text is a repr of all that it knows."""

    def __init__(self, **known):
        super().__init__(known)


FAILURES = {
    "no secret": (ValueError("no more"), "ValueError: no more"),
    "no text": (ValueError(), "ValueError"),
    "a repr": (VaultError(token=MARK, n=1), "VaultError: {'token': ****, 'n': 1}"),
    "bytes": (ValueError(MARK.encode()), "ValueError: b'****'"),
}


@pytest.mark.filterwarnings("ignore:BasicAuth is deprecated")
@pytest.mark.parametrize(("error", "told"), FAILURES.values(), ids=FAILURES)
async def test_password_of_a_proxy_is_in_no_view(
    serve, error, told, tmp_path, caplog, monkeypatch
):
    """A body that fails is told with its error, without the connection."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")
    proxy = (await serve([1.0])).replace("//", f"//user:{MARK}@")
    monkeypatch.setenv("http_proxy", proxy)
    decorators = LoggingClient.new_decorator(), TWICE
    with capture_logs() as logs:
        async with connected(
            "http://example.com/", *decorators, trust_env=True
        ) as client:
            with pytest.raises(aiohttp.ClientConnectionError):
                await client.put("/", data=Reading(error))
    (log,) = logs

    assert [] == showing({**views_of(log, tmp_path), "lines": caplog.text})
    assert (
        "ClientConnectionError: Failed to send the body: " + told
        == (log.to_dict()["response_cause"])
    )


async def test_failure_that_another_one_carries_is_told_likewise(serve, tmp_path):
    """A middleware may put it into the text of its own error, which is masked."""
    url = await serve([HEAD, 0.05, None])

    async def middleware(request, handler):
        try:
            return await handler(request)
        except aiohttp.ClientError as error:
            raise RuntimeError(f"no answer: {error!r}") from error

    with capture_logs() as logs:
        async with connected(url, TWICE, middlewares=(middleware,)) as client:
            with pytest.raises(RuntimeError):
                await client.get("/")

    shown = views_of(logs[0], tmp_path)
    assert [] == [each for each in shown.values() if f"sid={MARK}" in each]
    assert [] == [each for each in shown.values() if f"'X-Auth', '{MARK}" in each]
    await asyncio.sleep(0)
