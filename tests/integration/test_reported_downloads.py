"""What a report says of downloads that were resumed."""

from download_server import (
    RESUMING,
    RETRYING,
    Answer,
    DownloadServer,
    broken_at,
    download,
)
from made_lines import keeping


async def summary(tmp_path, *answers, decorators=(RETRYING, RESUMING)):
    """Download a file, and report on it."""
    with keeping(tmp_path) as kept:
        async with DownloadServer(*answers) as server:
            await download(server.url, *decorators, kept.lines)
        found = kept.answers()
        assert found["summary"] == kept.read()["summary"]
    return found


async def test_parts_are_no_retries(tmp_path):
    """The rest of a body is asked for, and nothing is tried again."""
    found = await summary(tmp_path, *broken_at(5_000, 9_000))

    shown = found["summary"]
    assert (3, 0) == (shown["attempts"], shown["retries"])
    assert 2 == shown["resumes"]
    assert (1, 0) == (shown["successes_without_retries"], shown["successes_by_retries"])
    outcomes = ["200, ClientPayloadError", "206, ClientPayloadError"]
    assert [(outcome, 1, 0) for outcome in outcomes] == [
        (failure["outcome"], failure["attempts"], failure["retried"])
        for failure in found["failures"]
    ]
    assert 0 == found["timeline"]["moments"][0]["retries"]


async def test_parts_alone(tmp_path):
    """The same where nothing else sends again."""
    found = await summary(tmp_path, *broken_at(5_000), decorators=[RESUMING])

    shown = found["summary"]
    assert (2, 0, 1) == (shown["attempts"], shown["retries"], shown["resumes"])


async def test_a_part_that_is_tried_again_is_a_retry(tmp_path):
    """It is asked for twice, and one of these is the rest of the body."""
    answers = [Answer(stop=5_000), Answer(status=503), Answer()]
    found = await summary(tmp_path, *answers)

    shown = found["summary"]
    assert (3, 1, 1) == (shown["attempts"], shown["retries"], shown["resumes"])
    assert 1 == shown["successes_by_retries"]
