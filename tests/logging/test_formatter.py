"""The two lines of a call, as text and as JSON."""

import asyncio
import json
import re

import aiohttp
import pytest
from calls import begin, end, end_call, function, report, upload
from chains import log_of, response_of, retrying, session, without_id

from aioretry_smithy import ContentPreviewingClient, RequestLog, new_response
from aioretry_smithy._logging.formatter import LogFormatter
from aioretry_smithy.smithy import RetryError, StandardRetryQuota, StandardRetryStrategy

URL = "https://example.com/orders"
TEXT = LogFormatter.text()
JSON = LogFormatter.json()
ESCAPES = "\x1b[2J\r\nResponse: {forged}\u2028\x85\udcff"
RETRYING = retrying(max_total_attempts=3)


def call(*answers, url=URL, decorators=(), **options):
    """Make a call for its log."""
    calls = session(answers, *decorators, headers={"Accept": "*/*"})
    return log_of(calls, url, **options)


def settled(line):
    """Return *line* without its id, and with its times of day left out."""
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", "...", without_id(line))


async def test_text_of_a_request():
    """The request line names the time, the target and the headers."""
    log = await call(200, headers={"X-Shop": "7"}, params={"page": "2"})

    line = settled(TEXT.format_request(log))

    assert (
        "Request: {startTime=..., scheme=https, host=example.com, method=GET,"
        " path=/orders?page=2, headers=[X-Shop=7]}"
    ) == line


@pytest.mark.parametrize(
    ("length", "ended", "shown"),
    [
        (0, None, "startTime=..., scheme="),
        (None, None, "startTime=..., scheme="),
        (5, None, "startTime=..., length=5, scheme="),
        (5, 0.25, "startTime=..., length=5, duration=0.250s, scheme="),
    ],
)
async def test_text_of_a_body_that_was_sent(length, ended, shown):
    """Its bytes and seconds, as far as they are known; nothing without a body."""
    ctx = begin()
    upload(ctx, length, ended)

    assert shown in settled(TEXT.format_request(ctx.log))


async def test_text_of_a_response():
    """The response line has status and headers; the length once the body ended."""
    log = await call((200, {"Content-Type": "text/plain"}, b"fine"))

    line = settled(TEXT.format_response(log))

    assert (
        "Response: {startTime=..., length=4, duration=0.000s, totalDuration=0.000s,"
        " scheme=https, host=example.com, method=GET, path=/orders,"
        " headers=[:status=200, Content-Type=text/plain]}"
    ) == line


async def test_both_lines_begin_with_the_id():
    """Lines of a call can be joined, though those of others come between them."""
    log = await call(503, 200, decorators=[RETRYING])
    for each in (log, *log.children):
        assert TEXT.format_request(each).startswith(f"Request: {{id={each.id}, ")
        assert TEXT.format_response(each).startswith(f"Response: {{id={each.id}, ")
        for line in _json_lines(JSON, each):
            assert each.id == json.loads(line)["id"]


async def test_text_of_a_failure():
    """A failure has a cause in the place of the headers, and no start of a response."""
    log = await call(aiohttp.ClientConnectionError("refused"))

    line = settled(TEXT.format_response(log))

    assert (
        "Response: {duration=0.000s, totalDuration=0.000s,"
        " scheme=https, host=example.com, method=GET, path=/orders,"
        " cause=ClientConnectionError: refused}"
    ) == line


async def test_text_before_the_outcome():
    """A formatter can be asked for a call under way: what is unknown is left out."""
    lines = []

    def answer(ctx, request):
        lines.extend([TEXT.format_request(ctx.log), TEXT.format_response(ctx.log)])
        return 200

    await call(answer)

    assert "headers=[Accept=*/*]" in lines[0]
    assert (
        "Response: {scheme=https, host=example.com, method=GET, path=/orders}"
    ) == without_id(lines[1])


async def test_text_counts_attempts():
    """An attempt says which one it is; the call says how many there were."""
    log = await call(503, 200, decorators=[RETRYING])
    first, second = log.children

    assert TEXT.format_request(first).endswith(", currentAttempt=1}")
    assert TEXT.format_request(second).endswith(
        "headers=[armeria-retry-count=1], currentAttempt=2}"
    )
    assert "totalAttempts" not in TEXT.format_response(second)
    assert "currentAttempt" not in TEXT.format_request(log)
    assert TEXT.format_response(log).endswith(
        "headers=[:status=200]}, {totalAttempts=2}"
    )


async def test_text_says_why_a_call_stopped():
    """The line of a call that was not retried further ends with the reason."""
    log = await call(503, 503, decorators=[retrying(0.0, max_total_attempts=2)])

    line = TEXT.format_response(log)

    assert line.endswith("{totalAttempts=2}, stopped: max_total_attempts")


async def test_text_says_what_a_quota_refused_with():
    """Where a Smithy strategy stopped a call, the line has its words."""
    quota = StandardRetryQuota(5)
    strategy = StandardRetryStrategy(retry_quota=quota)
    log = await call(503, decorators=[retrying(strategy)])
    words = "limiter (Retry quota exceeded: needs 14 tokens, 5 left)"

    assert TEXT.format_response(log).endswith(f", stopped: {words}")
    assert log.render().partition("\n")[0].endswith(f", stopped: {words}")


async def test_text_says_no_reason_twice():
    """A refusal that is raised is the cause already."""
    strategy = StandardRetryStrategy(retry_quota=StandardRetryQuota(5))
    decorator = retrying(strategy, raise_retry_error=True)
    with pytest.raises(RetryError) as caught:
        await response_of(session([503], decorator))
    log = RequestLog.of(caught.value)

    assert TEXT.format_response(log).endswith(", stopped: limiter")


async def test_text_of_previews():
    """How the bodies begin comes after the headers, on one line, secrets hidden."""
    log = await call(
        (200, {"Content-Type": "text/plain"}, b"fine\nand more"),
        decorators=[ContentPreviewingClient.new_decorator(10)],
        data="token=hush",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )

    request, response = TEXT.format_request(log), TEXT.format_response(log)

    assert request.endswith(
        "headers=[Content-Type=application/x-www-form-urlencoded],"
        ' preview="token=****"}'
    )
    assert response.endswith(
        'headers=[:status=200, Content-Type=text/plain], preview="fine\\nand m…"}'
    )
    assert request.isprintable()
    assert response.isprintable()


async def test_preview_cannot_pretend_to_be_fields():
    """It ends at its quote, whatever the server sends."""
    log = await call(
        (200, {"Content-Type": "text/plain"}, b'x"}, {totalAttempts=9}\x9b2J'),
        decorators=[ContentPreviewingClient.new_decorator(50)],
    )

    response = TEXT.format_response(log)

    assert response.endswith(r' preview="x\"}, {totalAttempts=9}�2J"}')


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://user:hush@example.com:8080/", "example.com:8080"),
        ("http://[::1]:8080/", "[::1]:8080"),
        ("https://example.com:443/", "example.com"),
        ("http://xn--.example.com/", "xn--.example.com"),
    ],
)
async def test_text_host(url, host):
    """As it is sent: with a port that is not the usual one, without credentials."""
    line = TEXT.format_request(await call(200, url=url))

    assert f", host={host}, " in line
    assert "hush" not in line


@pytest.mark.parametrize(
    "url", ["http://user:hush@host:port/?token=1", "http:///user:hush@host/"]
)
async def test_text_of_what_is_no_url(url):
    """A target that aiohttp will refuse is shown as it is and breaks nothing."""
    log = await call(aiohttp.InvalidURL("x"), url=url)

    line = TEXT.format_request(log)

    assert "method=GET, path=http" in line
    assert "host=" not in line
    assert "hush" not in line


@pytest.mark.parametrize("formatter", [TEXT, JSON])
async def test_server_cannot_forge_lines(formatter):
    """Control characters and line breaks of any kind, from anywhere, are escaped."""

    def answer(ctx, request):
        headers = {"X-Note": ESCAPES, "X\x1b\n": "1"}
        response = new_response(request, headers=headers)
        response.reason = ESCAPES
        return response

    log = await call(answer, headers={"X-Note": ESCAPES})
    failed = await call(aiohttp.ClientPayloadError(ESCAPES))

    lines = [
        formatter.format_request(log),
        formatter.format_response(log),
        formatter.format_response(failed),
    ]

    assert "forged" in lines[0]
    assert "forged" in lines[1]
    assert "forged" in lines[2]
    assert all(line.isprintable() for line in lines)
    assert all(1 == len(line.splitlines()) for line in lines)


async def test_json_of_a_request():
    """The request object has the request side of ``to_dict()``, under its names."""
    log = await call(200)
    whole = log.to_dict()

    shown = json.loads(JSON.format_request(log))

    assert ("request", 1) == (shown.pop("type"), shown.pop("v"))
    assert {
        *"""
        id name request_method request_url sent_method sent_url request_headers
        request_content_preview request_started_at request_length request_duration
        response_timeout attempt is_hedge
        """.split()
    } == shown.keys()
    assert {key: whole[key] for key in shown} == shown


async def test_json_of_a_response():
    """The response object has the response side of ``to_dict()``, under its names."""
    log = await call(503, 503, 503, decorators=[RETRYING])
    whole = log.to_dict()

    shown = json.loads(JSON.format_response(log))

    assert ("response", 1) == (shown.pop("type"), shown.pop("v"))
    assert 3 == shown["total_attempts"]
    assert 503 == shown["response_status"]
    assert "max_total_attempts" == shown["stop_reason"]
    assert {key: whole[key] for key in shown} == shown


async def test_json_sides_cover_the_log():
    """A side has each key of ``to_dict()``, but for the nested and what comes later."""
    log = await call(200)

    shown = json.loads(JSON.format_request(log)) | json.loads(JSON.format_response(log))

    assert {"delay", "delay_source", "children"} == log.to_dict().keys() - shown.keys()


def test_formatter_of_ones_own_needs_both_methods():
    """Half a formatter is found out where it is made."""

    class Half(LogFormatter):
        def format_request(self, log):
            return ""

    with pytest.raises(TypeError, match="format_response"):
        Half()


async def test_text_of_the_call_of_a_function():
    """Its name stands in place of the target, and nothing of HTTP is said."""
    ctx = function(f"fetch{ESCAPES}")
    attempt = ctx.derive(ctx.request)
    await asyncio.sleep(0.25)
    end(attempt)
    end_call(ctx, attempt)
    asked = settled(TEXT.format_request(ctx.log))

    assert asked.startswith(r"Request: {startTime=..., name=fetch\x1b[2J\r\n")
    assert "currentAttempt=1}" in TEXT.format_request(attempt.log)
    answered = without_id(TEXT.format_response(ctx.log))
    assert answered.startswith(
        r"Response: {duration=0.250s, totalDuration=0.250s, name=fetch\x1b[2J\r\n"
    )
    assert answered.endswith("}, {totalAttempts=1}")


async def test_json_of_the_call_of_a_function():
    """The keys of a line are always the same; nested, the calls inside are there."""
    log = await report()
    request, response = (json.loads(line) for line in _json_lines(JSON, log))
    whole = json.loads(LogFormatter.json(nested=True).format_response(log))

    assert ("fetch_report", None) == (request["name"], request["request_url"])
    assert (None, None) == (response["response_status"], response["response_cause"])
    assert "calls" not in response
    assert ["GET", "Store.load_rows"] == [
        call["name"] for call in whole["children"][0]["calls"]
    ]


def _json_lines(formatter, log):
    return [f"{formatter.format_request(log)}", f"{formatter.format_response(log)}"]
