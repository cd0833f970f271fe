"""What the log of a resumed download shows."""

from __future__ import annotations

from chains import NOW, notes_of, retrying
from download_server import FILE, Answer, DownloadServer, broken_at
from resumed_calls import download, failure

from aioretry_smithy import LoggingClient, ResumingClient, RetryStrategy

RESUMING = ResumingClient.new_decorator()
RETRYING = retrying(RetryStrategy.failsafe(NOW))


async def test_the_log_of_a_download_shows_its_parts():
    """The call has the first status, the last end, and no failure."""
    async with DownloadServer(*broken_at(5_000, 9_000)) as server:
        _, log = await download(server.url, RETRYING, RESUMING)
    first, second, last = log.children

    assert (200, None, None, True) == (
        log.response_status,
        log.response_cause,
        log.stop_reason,
        log.is_success,
    )
    assert (len(FILE), True) == (log.response_length, log.is_complete)
    assert [5_000, 4_000, len(FILE) - 9_000] == [
        part.response_length for part in log.children
    ]
    assert ["ClientPayloadError", "ClientPayloadError", None] == [
        part.response_cause_type for part in log.children
    ]
    assert first.delay is second.delay is last.delay is None
    assert log.total_duration >= last.started - log.started
    assert "Content-Range" not in log.response_headers
    assert "3 attempts" in log.render()


async def test_lines_after_the_body_come_when_the_last_part_has_ended(caplog):
    """With the length of all of it."""
    caplog.set_level("INFO", "aioretry_smithy")
    logging = LoggingClient.new_decorator(
        log_after="body", successful_response_log_level=20
    )
    async with DownloadServer(*broken_at(5_000)) as server:
        await download(server.url, RESUMING, logging)

    (line,) = [text for text in caplog.messages if "Response" in text]
    assert str(len(FILE)) in line
    assert "totalAttempts=2" in line


async def test_the_log_keeps_the_first_and_the_last_parts():
    """And counts all of them."""
    answers = broken_at(*range(100, 100 + 120 * 50, 50))
    async with DownloadServer(*answers) as server:
        body, log = await download(server.url, RETRYING, RESUMING)

    assert FILE == body
    assert (121, 100) == (log.total_attempts, len(log.children))
    numbers = [part.attempt for part in log.children]
    assert [*range(1, 51), *range(72, 122)] == numbers
    assert 121 == log.to_dict()["total_attempts"]
    assert "121 attempts" in log.render()
    assert "and 21 more attempts" in log.render()


async def test_notes_are_on_the_one_error_that_the_caller_gets():
    """As many as there are logs, however many parts there were."""
    answers = [*broken_at(*range(100, 100 + 120 * 50, 50))[:-1], Answer(status=404)]
    async with DownloadServer(*answers) as server:
        _, error, log = await failure(server.url, RESUMING)

    assert 100 == len(notes_of(error))
    assert not any(
        hasattr(part.response_cause, "__notes__") for part in log.children[:-1]
    )
