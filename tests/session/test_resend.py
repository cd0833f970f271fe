"""Uploads with a tracker, which aiohttp itself sends again; and its frames."""

from __future__ import annotations

import asyncio
from types import FunctionType

import aiohttp
import pytest
from chains import retrying

from aioretry_smithy import (
    HttpRequest,
    RequestLog,
    RetryStrategy,
    decorate,
    is_unprocessed,
    new_response,
)

URL = "http://localhost/orders"


@pytest.fixture
async def session(monkeypatch):
    """A session that retries nothing, and notes whether aiohttp would send again."""
    async with aiohttp.ClientSession() as client:
        client.seen = {}
        client.answers = {}

        async def send(self, method, url, **options):
            self.seen[url] = bool(self._retry_connection)
            await asyncio.sleep(0)
            if (failure := self.answers.get(url)) is not None:
                await failure()
            return new_response(HttpRequest(method, url))

        monkeypatch.setattr(aiohttp.ClientSession, "_request", send)
        yield decorate(client, retrying(RetryStrategy.never()))


def of_aiohttp(function, name="_request", **known):
    """Return a function whose frames look like those of aiohttp's function."""
    code = function.__code__.replace(co_name=name)
    return FunctionType(
        code, {"__name__": "aiohttp.client", "aiohttp": aiohttp, **known}
    )


async def test_aiohttp_sends_tracked_uploads_again_and_no_others(session):
    """Also where both are under way together."""
    await asyncio.gather(
        session.put(f"{URL}/1", data=b"1", upload_tracker=object()),
        session.put(f"{URL}/2", data=b"2"),
        session.put(f"{URL}/3", data=b"3", upload_tracker=object()),
    )

    assert {f"{URL}/1": True, f"{URL}/2": False, f"{URL}/3": True} == session.seen


@pytest.mark.parametrize("was_sent", [True, False])
async def test_tracked_upload_that_was_sent_once_was_seen(session, was_sent):
    """A refused connection of the second request changes nothing about that."""
    session.answers[URL] = of_aiohttp(sent if was_sent else unsent)
    with pytest.raises(aiohttp.ConnectionTimeoutError) as caught:
        await session.put(URL, data=b"1", upload_tracker=object())

    assert was_sent is RequestLog.of(caught.value).sent

    assert was_sent is not is_unprocessed(caught.value)


async def sent():
    history = ["a redirect"]  # noqa: F841
    raise aiohttp.ConnectionTimeoutError


async def unsent():
    history = []  # noqa: F841
    raise aiohttp.ConnectionTimeoutError


async def renamed():
    await connect()  # noqa: F821


async def broken():
    raise aiohttp.ServerDisconnectedError


async def test_break_after_unknown_redirects_is_a_failure(session):
    """If aiohttp renames what it keeps them in, nobody knows what to send again."""
    connect = of_aiohttp(broken, "_connect_and_send_request")
    session.answers[URL] = of_aiohttp(renamed, connect=connect)
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await session.get(URL)

    assert [URL] == [*session.seen]
