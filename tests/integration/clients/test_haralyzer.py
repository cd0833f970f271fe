"""A reader of HAR reads what :class:`RequestLog` and the report make."""

import json
from contextlib import closing

import pytest

pytest.importorskip("haralyzer")

from chains import connected, retrying
from haralyzer import HarParser

from aioretry_smithy import RequestLog
from aioretry_smithy._log.exports import HarArchive
from aioretry_smithy._log.saved_log import SavedLog


@pytest.fixture
async def log(flaky, start):
    """The log of a call that was answered 503 and then 200."""
    flaky.answers["/orders"] = {"orders": [1, 2]}
    url = await start(flaky)
    client = connected(url, retrying(0.01))
    async with client, client.get("/orders", params={"page": "1"}) as response:
        await response.read()
        return RequestLog.of(response)


def read(archive):
    """Read an archive as haralyzer does."""
    return HarParser(json.loads(json.dumps(archive)))


async def test_page_has_the_attempts(log):
    """Each attempt is an entry, with what HAR has no place for beside it."""
    parser = read(log.to_har())
    (page,) = parser.pages

    assert "1.2" == parser.version
    # The server is unavailable first, or hangs up.
    assert [log.children[0].response_status or 0, 200] == [
        entry.response.status for entry in page.entries
    ]
    assert ["GET", "GET"] == [entry.request.method for entry in page.entries]
    assert [1, 2] == [entry.raw_entry["_attempt"] for entry in page.entries]
    assert [log.children[0].request_started_at] == [page.entries[0].startTime]
    assert [{"name": "page", "value": "1"}] == page.entries[0].request.queryString
    assert page.entries[1].time > 0


async def test_file_of_calls(log, tmp_path):
    """A file that was written call by call is the same to it."""
    with (tmp_path / "calls.har").open("w") as file, closing(HarArchive()) as archive:
        for _ in range(3):
            archive.add(SavedLog(log.to_dict()))
        archive.write(file)

    parser = HarParser.from_file(tmp_path / "calls.har")

    assert [2, 2, 2] == [len(page.entries) for page in parser.pages]
