"""Parts of a download: asked for, retried, given up, or asked for by the caller."""

import asyncio

import aiohttp
import pytest
from aiohttp import ClientTimeout
from chains import connected, retrying
from download_server import (
    FILE,
    HOLD,
    RESUMING,
    RETRYING,
    TAG,
    Answer,
    DownloadServer,
    broken_at,
    download,
    failure,
    gather,
)

from aioretry_smithy import (
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    RequestLog,
    ResumingClient,
    RetryStrategy,
    client_decorator,
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "others", [[], [Answer(status=503)]], ids=["after a break", "after an answer"]
)
async def test_a_wait_beyond_the_deadline_is_not_begun(waits, others):
    """The break goes out at once, and the log says why."""
    patient = ResumingClient.new_decorator(max_resumes_without_progress=100)
    async with DownloadServer(Answer(stop=5_000), *others) as server:
        got, error, log = await failure(
            server.url, patient, timeout=ClientTimeout(total=5.0)
        )

    assert FILE[:5_000] == got
    assert isinstance(error, aiohttp.ClientPayloadError)
    assert "deadline" == log.stop_reason
    # Twice as long would have been too long.
    assert 2.0 < max(waits) < 5.0


@pytest.mark.slow
@pytest.mark.parametrize("total", [300, None])
@pytest.mark.parametrize("changes", [{}, {"ETag": None}], ids=["can be", "cannot"])
async def test_the_attempt_timeout_ends_at_the_headers(changes, total):
    """Whether or not the answer can be continued."""

    async def read(response):
        body = bytearray()
        async for piece in response.content.iter_any():
            if not body:
                await asyncio.sleep(0.6)
            body += piece
        return bytes(body)

    slow = retrying(RetryStrategy.failsafe(), attempt_timeout=0.4)
    file = FILE * 40
    async with DownloadServer(Answer(end=True, changes=changes, body=file)) as server:
        limit = ClientTimeout(total=total)
        body, _ = await download(server.url, slow, RESUMING, read=read, timeout=limit)

    assert file == body


@pytest.mark.slow
async def test_a_part_may_be_shorter_than_asked():
    """Then the rest is asked for, without a wait."""

    def short(asked):
        end = min(asked.start + 6_000, len(FILE))
        changes = {
            "Content-Range": f"bytes {asked.start}-{end - 1}/{len(FILE)}",
            "Content-Length": str(end - asked.start),
        }
        return Answer(stop=end, end=True, changes=changes)

    async with DownloadServer(Answer(stop=1_000), short) as server:
        body, log = await download(server.url, RESUMING)

    assert FILE == body
    assert [None, "bytes=1000-", "bytes=7000-", "bytes=13000-", "bytes=19000-"] == (
        server.ranges
    )
    assert {None} == {part.delay for part in log.children}


@pytest.mark.slow
async def test_a_416_without_a_total_is_no_end_of_what_was_cut_off():
    """The file may be shorter by now, or the server may just send no parts."""
    no_more = Answer(status=416, body=b"", end=True)
    first = Answer(stop=4_000, chunk=1_000)
    async with DownloadServer(first, no_more) as server:
        got, error, log = await failure(server.url, RETRYING, RESUMING)

    assert FILE[:4_000] == got
    words = "there is no telling whether it was the end (416)"
    assert f"cannot resume at byte 4000: {words}" == str(error)
    assert "no_retry" == log.stop_reason


NO_LENGTH = {"Content-Length": None}


@pytest.mark.slow
async def test_a_part_that_ends_without_a_byte_brought_nothing():
    """It ends well, as far as aiohttp knows; but it cannot go on for ever."""

    def nothing(asked):
        return Answer(stop=asked.start, changes=NO_LENGTH)

    once = ResumingClient.new_decorator(max_resumes_without_progress=1)
    async with DownloadServer(Answer(stop=5_000), nothing) as server:
        got, error, log = await failure(server.url, once)

    assert FILE[:5_000] == got
    assert "cannot resume at byte 5000: the parts are empty" == str(error)
    assert "backoff_exhausted" == log.stop_reason


BROKEN = Answer(stop=5_000)
WHOLE = Answer(end=True)


def failing(*failures):
    """Make a decorator that raises them, one a part; then all goes on."""
    left = [*failures]

    @client_decorator
    async def fail_later(delegate, ctx, request):
        if left and request.headers.get("Range"):
            raise left.pop(0)
        return await delegate.execute(ctx, request)

    return fail_later


@pytest.mark.slow
@pytest.mark.usefixtures("waits")
async def test_progress_sets_the_count_back():
    """Failures between parts that bring something end nothing."""
    bad = Answer(status=503)
    answers = [BROKEN, bad, bad, Answer(stop=9_000), bad, bad, WHOLE]
    async with DownloadServer(*answers) as server:
        body, _ = await download(server.url, RESUMING)

    assert FILE == body


@pytest.mark.slow
@pytest.mark.usefixtures("waits")
async def test_as_many_exceptions_in_a_row_end_it():
    """The last one goes out as it is; kinds are not told apart."""
    errors = [OSError(), TimeoutError(), aiohttp.ServerDisconnectedError()]
    async with DownloadServer(BROKEN, WHOLE) as server:
        got, error, log = await failure(server.url, failing(*errors), RESUMING)

    assert FILE[:5_000] == got
    assert "backoff_exhausted" == log.stop_reason
    assert "ServerDisconnectedError" == log.response_cause_type
    assert isinstance(error, aiohttp.ServerDisconnectedError)


@pytest.mark.slow
@pytest.mark.usefixtures("waits")
@pytest.mark.parametrize("chain", [[RESUMING], [retrying(0.0), RESUMING]])
async def test_a_bad_answer_holds_nothing_while_the_next_part_is_asked_for(chain):
    """Neither the one connection of the pool, nor a place."""
    limit = ConcurrencyLimit.fixed(1)
    limiting = ConcurrencyLimitingClient.new_decorator(limit)
    stalling = Answer(status=503, stop=10, end=HOLD)
    async with DownloadServer(BROKEN, stalling, stalling, WHOLE) as server:
        async with asyncio.timeout(5.0):
            body, _ = await download(
                server.url, limiting, *chain, connector=aiohttp.TCPConnector(limit=1)
            )

    assert FILE == body
    assert 0 == limit.in_flight


@pytest.mark.slow
@pytest.mark.usefixtures("waits")
class TestRetryAfter:
    """What a server asks for is waited for."""

    async def test_too_long_a_wait_ends_the_download(self):
        """Longer than the usual limit, or than the deadline leaves."""
        for seconds, total in (("3600", 60.0), ("20", 10.0)):
            busy = Answer(status=429, changes={"Retry-After": seconds})
            async with DownloadServer(BROKEN, busy) as server:
                _, error, log = await failure(
                    server.url, RESUMING, timeout=ClientTimeout(total=total)
                )

            assert str(error).endswith("the server answers with 429")
            assert "retry_after_too_long" == log.stop_reason

    async def test_settings_may_ignore_it(self, waits):
        """Those of the retrying client further in."""
        once = retrying(RetryStrategy.never(), use_retry_after=False)
        busy = Answer(status=503, changes={"Retry-After": "3600"})
        async with DownloadServer(BROKEN, busy, WHOLE) as server:
            body, _ = await download(server.url, once, RESUMING)

        assert FILE == body
        assert waits[0] < 1.0

    async def test_an_exception_may_ask_for_it_too(self, waits):
        """By Smithy's attribute."""
        error = aiohttp.ServerDisconnectedError()
        error.retry_after = 9.0
        async with DownloadServer(BROKEN, WHOLE) as server:
            await download(server.url, failing(error), RESUMING)

        assert 9.0 <= waits[0] < 9.5

    async def test_an_answer_that_was_raised_asks_for_it_too(self, waits):
        """By its headers."""

        async def raise_for_status(request, handler):
            response = await handler(request)
            response.raise_for_status()
            return response

        busy = Answer(status=503, changes={"Retry-After": "7"})
        async with DownloadServer(BROKEN, busy, WHOLE) as server:
            body, _ = await download(
                server.url, RESUMING, middlewares=[raise_for_status]
            )

        assert FILE == body
        assert 7.0 <= waits[0] < 7.5


CHANGED = "Sun, 06 Nov 1994 08:49:37 GMT"
LATER = "Mon, 07 Nov 1994 08:49:37 GMT"


def rest_from(start, validator=TAG):
    """Return the arguments of a request for all from a byte on."""
    own = {} if validator is None else {"If-Range": validator}
    return {"headers": {"Range": f"bytes={start}-", **own}}


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
async def test_time_of_the_caller_is_asked_for_again():
    """A part that follows a time need not name it."""
    changes = {"ETag": None}
    async with DownloadServer(*broken_at(9_000, changes=changes)) as server:
        options = rest_from(4_000, CHANGED)
        body, _ = await download(server.url, RESUMING, options=options)

    assert FILE[4_000:] == body
    assert [CHANGED, CHANGED] == [each.headers["if-range"] for each in server.asked]


WEAK = 'W/"v1"'


@pytest.mark.slow
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


@pytest.mark.slow
async def test_weak_tag_of_the_caller_is_no_reason_to_continue():
    """Bytes of two parts by it may not fit to one another."""
    answer = Answer(stop=9_000, changes={"ETag": WEAK})
    async with DownloadServer(answer) as server:
        with pytest.raises(aiohttp.ClientPayloadError):
            await download(server.url, RESUMING, options=rest_from(4_000, WEAK))

    assert 1 == len(server.asked)


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("answer", NOT_CONTINUED.values(), ids=NOT_CONTINUED)
async def test_other_answers_are_handed_over(answer):
    """The break reaches the caller as without this client."""
    async with DownloadServer(answer) as server:
        with pytest.raises(aiohttp.ClientPayloadError):
            await download(server.url, RESUMING, options=rest_from(4_000))

    assert 1 == len(server.asked)


@pytest.mark.slow
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


@pytest.mark.slow
async def test_part_that_nobody_asked_for_is_not_continued():
    """A 206 without a range is an answer of its own."""
    async with DownloadServer(Answer(stop=50, status=206)) as server:
        with pytest.raises(aiohttp.ClientPayloadError):
            await download(server.url, RESUMING)

    assert 1 == len(server.asked)
