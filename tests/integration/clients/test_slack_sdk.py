"""slack_sdk takes a session, and has retries of its own to switch off."""

import aiohttp
import pytest

pytest.importorskip("slack_sdk")

from chains import connected, retrying
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

LIST, POST = "/conversations.list", "/chat.postMessage"


async def test_question_to_slack_is_asked_again(example, flaky, start, attempts):
    """A call that changes nothing is sent again after any failure."""
    flaky.answers[LIST] = {"ok": True, "channels": []}
    base_url = await start(flaky)

    channels = await example("with_slack_sdk").announce("Open", "xoxb-1", base_url)

    assert 0 == channels
    assert [LIST, LIST] == [path for _, path, _ in flaky.requests]
    assert [2] == attempts()


async def test_message_is_posted_again_when_it_was_throttled(
    example, busy, start, attempts
):
    """A throttled message was not posted, so that it may be sent once more."""
    busy.answers = {LIST: {"ok": True, "channels": [{"id": "C1"}]}, POST: {"ok": True}}
    base_url = await start(busy)

    channels = await example("with_slack_sdk").announce("Open", "xoxb-1", base_url)

    assert 1 == channels
    assert [LIST, LIST, POST, POST] == [path for _, path, _ in busy.requests]
    assert b"Open" in busy.requests[-1][2]
    assert busy.requests[-1] == busy.requests[-2]
    assert [2, 2] == attempts()


async def test_message_is_not_posted_twice(example, flaky, start, attempts):
    """A message that may have been posted is left to the library and its caller."""
    strategy = example("with_slack_sdk").STRATEGY
    base_url = await start(flaky)
    async with connected(None, retrying(strategy)) as session:
        slack = AsyncWebClient(base_url=base_url, session=session, retry_handlers=[])
        with pytest.raises((aiohttp.ClientError, SlackApiError)):
            await slack.chat_postMessage(channel="C1", text="Open")

    assert [POST] == [path for _, path, _ in flaky.requests]
    assert [1] == attempts()
