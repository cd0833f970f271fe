"""Whatever a server does to a download: its bytes are those of one version."""

import asyncio
from unittest import mock

import aiohttp
import pytest
from chains import NOW, SAFELY, connected, retrying
from download_server import Answer, DownloadServer
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy import Backoff, ResumingClient

FIRST = bytes(range(256)) * 12
OTHER = FIRST[::-1]
LENGTH = len(FIRST)

positions = st.integers(0, LENGTH)
sizes = st.sampled_from([0, 1, 100, 1_000])

HONEST = ["whole", "short", "open"]
LIES = {
    "tag": lambda start: {"changes": {"ETag": '"v2"'}},
    "weak tag": lambda start: {"changes": {"ETag": 'W/"v1"'}},
    "no tag": lambda start: {"changes": {"ETag": None}},
    "again": lambda start: {"status": 200},
    "time": lambda start: {
        "changes": {"Last-Modified": "Sun, 06 Nov 1994 08:49:38 GMT"}
    },
    "type": lambda start: {"changes": {"Content-Type": "text/html"}},
    "encoding": lambda start: {"changes": {"Content-Encoding": "aes128gcm"}},
    "range": lambda start: {
        "changes": {"Content-Range": f"bytes {start + 1}-{LENGTH}/{LENGTH}"}
    },
    "no range": lambda start: {"changes": {"Content-Range": None}},
    "missing": lambda start: {"status": 404},
    "broken": lambda start: {"status": 500},
}
LIES_ABOUT_THE_LENGTH = {
    "total": lambda start: {
        "changes": {"Content-Range": f"bytes {start}-{LENGTH - 1}/{LENGTH + 1}"}
    },
    "end": lambda start: {
        "status": 416,
        "changes": {"Content-Range": f"bytes */{start}"},
    },
    "unsaid end": lambda start: {"status": 416, "changes": {"Content-Range": None}},
}


def honest(kind, stop, chunk):
    """Make a part of the first version, which may break off."""

    def answer(asked):
        start, end, changes = asked.start, LENGTH, {}
        if start == LENGTH:
            changes = {"Content-Range": f"bytes */{LENGTH}", "Content-Length": "0"}
            return Answer(status=416, body=b"", changes=changes)
        if kind == "short":
            end = min(LENGTH, start + 1 + stop // 3)
        total = "*" if kind == "open" else LENGTH
        changes["Content-Range"] = f"bytes {start}-{end - 1}/{total}"
        if not chunk:
            changes["Content-Length"] = str(end - start)
        breaks = None if stop >= end else max(start, stop)
        return Answer(
            stop=breaks,
            body=FIRST[:end],
            chunk=chunk,
            changes=COMMON | changes,
            end=True if breaks is None else None,
        )

    return answer


COMMON = {
    "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT",
    "Content-Type": "application/octet-stream",
}


def lying(lie, chunk):
    """Make a part of another version, with a header that contradicts the first one."""

    def answer(asked):
        settings = lie(asked.start)
        changes = COMMON | settings.pop("changes", {})
        return Answer(body=OTHER, chunk=chunk, changes=changes, **settings)

    return answer


@st.composite
def servers(draw):
    """Draw what a server answers, and whether it is honest.

    It breaks off and sends short parts; in the end there may be a lie.
    """
    chunk = draw(sizes)
    first = Answer(
        stop=draw(positions.filter(lambda at: at < LENGTH)),
        body=FIRST,
        chunk=chunk,
        changes=COMMON,
    )
    parts = st.builds(honest, st.sampled_from(HONEST), positions, sizes)
    answers = [first, *draw(st.lists(parts, max_size=6))]
    lies = LIES if chunk else LIES | LIES_ABOUT_THE_LENGTH
    lie = draw(st.none() | st.sampled_from([*lies]))
    if lie is None:
        return [*answers, honest("whole", LENGTH, 0)], True
    return [*answers, lying(lies[lie], draw(sizes))], False


async def read(answers, *decorators):
    got, failure = bytearray(), None
    connector = aiohttp.TCPConnector(limit=1)
    async with (
        DownloadServer(*answers) as server,
        connected(None, *decorators, connector=connector) as session,
        asyncio.timeout(20.0),
        session.get(server.url) as response,
    ):
        try:
            async for piece in response.content.iter_any():
                got += piece
        except aiohttp.ClientPayloadError as error:
            failure = error
    return bytes(got), failure


@pytest.mark.slow
@given(servers(), st.booleans())
def test_no_download_differs_from_the_whole(server, has_retries):
    """It is the first version to the byte, or ends with an error within it.

    It comes whole where no answer contradicts an earlier one.
    """
    answers, is_honest = server
    resuming = ResumingClient.new_decorator(max_resumes_without_progress=100)
    retries = [retrying(SAFELY)] if has_retries else []
    # Parts that bring nothing are followed at once.
    with mock.patch.object(Backoff, "of_default", return_value=NOW):
        got, failure = asyncio.run(read(answers, *retries, resuming))

    assert FIRST.startswith(got)
    assert FIRST == got or failure is not None
    assert FIRST == got or not is_honest
