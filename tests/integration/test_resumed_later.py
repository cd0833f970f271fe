"""A caller who has the beginning of a file gets the rest, as one stream."""

import aiohttp
import pytest
from chains import connected
from download_server import (
    FILE,
    RESUMING,
    TAG,
    Answer,
    DownloadServer,
    broken_at,
    download,
    gather,
)

from aioretry_smithy import RequestLog

pytestmark = pytest.mark.slow

CHANGED = "Sun, 06 Nov 1994 08:49:37 GMT"
LATER = "Mon, 07 Nov 1994 08:49:37 GMT"


def rest_from(start, validator=TAG):
    """Return the arguments of a request for all from a byte on."""
    own = {} if validator is None else {"If-Range": validator}
    return {"headers": {"Range": f"bytes={start}-", **own}}


@pytest.mark.parametrize("validator", [TAG, None])
async def test_rest_is_continued(validator):
    """Each part begins where the bytes of the caller end."""
    async with DownloadServer(*broken_at(7_000, 7_000, 15_000)) as server:
        options = rest_from(4_000, validator)
        body, log = await download(server.url, RESUMING, options=options)

    assert FILE[4_000:] == body
    starts = [f"bytes={start}-" for start in (4_000, 7_000, 7_000, 15_000)]
    assert starts == server.ranges
    sent = [asked.headers.get("if-range") for asked in server.asked]
    assert [validator, TAG, TAG, TAG] == sent
    assert {"identity"} == {each.headers["accept-encoding"] for each in server.asked}
    assert (206, len(FILE) - 4_000) == (log.response_status, log.response_length)
    assert log.is_success


async def test_newer_version_comes_whole_and_is_continued():
    """The server answers the range with a 200, which begins at the beginning."""
    answers = [Answer(stop=5_000, status=200), Answer(end=True)]

    def whole(asked):
        asked.headers.pop("range")
        return answers[0]

    async with DownloadServer(whole, answers[1]) as server:
        options = rest_from(4_000, '"v0"')
        body, log = await download(server.url, RESUMING, options=options)

    assert FILE == body
    assert (200, len(FILE)) == (log.response_status, log.response_length)
    assert TAG == server.asked[1].headers["if-range"]


async def test_time_of_the_caller_is_asked_for_again():
    """A part that follows a time need not name it."""
    changes = {"ETag": None}
    async with DownloadServer(*broken_at(9_000, changes=changes)) as server:
        options = rest_from(4_000, CHANGED)
        body, _ = await download(server.url, RESUMING, options=options)

    assert FILE[4_000:] == body
    assert [CHANGED, CHANGED] == [each.headers["if-range"] for each in server.asked]


WEAK = 'W/"v1"'


@pytest.mark.parametrize(
    ("validator", "changes"),
    [
        pytest.param('"v0"', {}, id="another tag"),
        pytest.param(CHANGED, {"Last-Modified": LATER}, id="another time"),
        pytest.param(WEAK, {}, id="weak"),
        pytest.param("v1", {}, id="neither a tag nor a time"),
    ],
)
async def test_rest_is_asked_for_by_the_tag_of_the_answer(validator, changes):
    """A server that looks at no ``If-Range`` has answered; what it names counts."""
    async with DownloadServer(*broken_at(9_000, changes=changes)) as server:
        options = rest_from(4_000, validator)
        body, _ = await download(server.url, RESUMING, options=options)

    assert FILE[4_000:] == body
    assert [validator, TAG] == [each.headers["if-range"] for each in server.asked]


async def test_weak_tag_of_the_caller_is_no_reason_to_continue():
    """Bytes of two parts by it may not fit to one another."""
    answer = Answer(stop=9_000, changes={"ETag": WEAK})
    async with DownloadServer(answer) as server:
        with pytest.raises(aiohttp.ClientPayloadError):
            await download(server.url, RESUMING, options=rest_from(4_000, WEAK))

    assert 1 == len(server.asked)


async def test_part_of_another_version_ends_the_stream():
    """The bytes before it are of the version that the caller has."""
    other = Answer(changes={"ETag": '"v2"'}, end=True)
    got = bytearray()
    async with (
        DownloadServer(Answer(stop=9_000), other) as server,
        connected(None, RESUMING) as session,
        session.get(server.url, **rest_from(4_000)) as response,
    ):
        with pytest.raises(aiohttp.ClientPayloadError) as caught:
            await gather(response, got)

    said = "cannot resume at byte 9000: the server has another version by now (ETag)"
    assert said in str(caught.value)
    assert FILE[4_000:9_000] == bytes(got)
    assert 5_000 == RequestLog.of(response).response_length


NOT_CONTINUED = {
    "another range than asked": Answer(
        stop=9_000, changes={"Content-Range": "bytes 0-19/20"}
    ),
    "a range without words": Answer(stop=9_000, changes={"Content-Range": "all"}),
    "nothing left": Answer(stop=9_000, status=416),
}


@pytest.mark.parametrize("answer", NOT_CONTINUED.values(), ids=NOT_CONTINUED)
async def test_other_answers_are_handed_over(answer):
    """The break reaches the caller as without this client."""
    async with DownloadServer(answer) as server:
        with pytest.raises(aiohttp.ClientPayloadError):
            await download(server.url, RESUMING, options=rest_from(4_000))

    assert 1 == len(server.asked)


@pytest.mark.parametrize("span", ["bytes=0-99", "bytes=-5", "bytes=0-,5-", "lines=1-"])
async def test_other_ranges_go_out_as_they_are(span):
    """Their ends are the caller's business."""
    answer = Answer(stop=50, status=206)

    def part(asked):
        asked.headers.pop("range")
        return answer

    async with DownloadServer(part) as server:
        with pytest.raises(aiohttp.ClientPayloadError):
            await download(server.url, RESUMING, options={"headers": {"Range": span}})

    (asked,) = server.asked
    assert "identity" != asked.headers["accept-encoding"]


async def test_part_that_nobody_asked_for_is_not_continued():
    """A 206 without a range is an answer of its own."""
    async with DownloadServer(Answer(stop=50, status=206)) as server:
        with pytest.raises(aiohttp.ClientPayloadError):
            await download(server.url, RESUMING)

    assert 1 == len(server.asked)
