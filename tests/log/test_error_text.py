"""Errors in words: class and message, cut and without secrets in every view."""

import io
import json
import time
from urllib.parse import quote

import aiohttp
import pytest
from aiohttp.http_exceptions import BadHttpMessage
from calls import end, http
from chains import log_of, response_of, retrying, session
from token_strategies import Plain

from aioretry_smithy import LogFormatter, RequestLog, smithy
from aioretry_smithy._log.error_text import describe_cause

pytest.importorskip("rich", reason="needs the extra cli")
import pytest
from chains import connected
from rich.console import Console


class UnspeakableError(Exception):
    def __str__(self):
        raise AttributeError("no message")


@pytest.mark.parametrize(
    ("cause", "described"),
    [
        (TimeoutError(), "TimeoutError"),
        (TimeoutError("late"), "TimeoutError: late"),
        (UnspeakableError(), "UnspeakableError"),
        (aiohttp.ClientConnectorError(None, OSError()), "ClientConnectorError"),
        (
            aiohttp.ServerDisconnectedError(b"sid=1"),
            "ServerDisconnectedError: Server disconnected in the head",
        ),
        # As a parser says of a line that is too long.
        (
            BadHttpMessage("Got more than 5 bytes when reading: bytearray(b'sid')."),
            "BadHttpMessage: Got more than 5 bytes when reading",
        ),
        # Without a cause it has nothing to quote.
        (
            aiohttp.ClientConnectionError(
                "Failed to send bytes into the underlying connection Connection<a>"
            ),
            "ClientConnectionError: Failed to send the body",
        ),
        # aiohttp quotes a header that it cannot read, be it a cookie.
        (ValueError("Invalid: b'sid=1\\'2'"), "ValueError: Invalid: b'****'"),
        (ValueError("b\"sid='1'\" and b'2"), 'ValueError: b"****" and b\'****'),
        (ValueError("Bad line b'HTTP'"), "ValueError: Bad line b'****'"),
        (ValueError("bob's"), "ValueError: bob's"),
        *(
            (ValueError(f"{before}b'sid=1'"), f"ValueError: {before}b'****'")
            for before in ("a (", "[", "sid ", "sid:", '"', "'", "sid...", "- ")
        ),
        (ValueError("[b'', b' 1']"), "ValueError: [b'****', b'****']"),
        # The end of a name is no beginning.
        *(
            (ValueError(f"{name!r} is open, 'b'"), f"ValueError: {name!r} is open, 'b'")
            for name in ("service-b", "eu.b", "shop/b", "db", "b")
        ),
    ],
)
async def test_cause_is_described(cause, described):
    """Class and message, or the class alone, also where the message raises."""
    ctx = http("http://example.com/")
    end(ctx, cause)

    assert described == describe_cause(ctx.log)
    assert described in ctx.log.render()


MANY = 5_000_000


LONGEST = 4096


ROOM = 400


"""What the rest of a line may take."""


SECRET = "hunter2"


def cut_text(text, many=MANY, kept=LONGEST):
    return f"{text}… ({many - kept} more characters)"


async def log_of_failure(error, *decorators):
    return await log_of(session([error], *decorators))


async def test_every_view_of_a_long_failure_is_short(tmp_path):
    """Five million characters are five thousand in a line, and fewer in a tree."""
    log = await log_of_failure(
        ValueError("x" * MANY), retrying(0.0, max_total_attempts=1)
    )
    console = Console(file=io.StringIO(), width=200, force_terminal=True)
    console.print(log)
    log.to_svg(tmp_path / "call.svg")
    said = f"ValueError: {cut_text('x' * LONGEST)}"

    assert said == log.to_dict()["response_cause"]
    assert said == log.children[0].to_dict()["response_cause"]
    assert f"cause={said}" in LogFormatter.text().format_response(log)
    assert (
        said == json.loads(LogFormatter.json().format_response(log))["response_cause"]
    )
    assert len(LogFormatter.text().format_response(log)) < LONGEST + ROOM
    assert len(LogFormatter.json().format_response(log)) < LONGEST + 2 * ROOM
    for view in log.render(), repr(log), console.file.getvalue():
        assert len(view) < 3 * ROOM
    assert (tmp_path / "call.svg").stat().st_size < 20_000


async def test_message_of_a_status_is_cut_too():
    """It stands beside the status, and a server may have sent it."""

    async def refuse(response):
        raise aiohttp.ClientResponseError(
            response.request_info, (), status=404, message="x" * MANY
        )

    async with session([404]) as client:
        with pytest.raises(aiohttp.ClientResponseError) as caught:
            await client.get("http://localhost/", raise_for_status=refuse)
    log = RequestLog.of(caught.value)

    assert len(log.render()) < ROOM
    assert len(log.to_dict()["response_cause"]) < LONGEST + ROOM


async def test_long_words_of_a_refusal():
    """The error of a Smithy strategy is a cause too."""

    class Wordy(Plain):
        def refresh_retry_token_for_retry(self, **_):
            raise smithy.RetryError("x" * MANY)

    log = await log_of(session([503], retrying(Wordy())))

    assert f"RetryError: {cut_text('x' * LONGEST)}" == log.to_dict()["retry_error"]
    assert len(log.render()) < 2 * ROOM


async def test_text_that_is_just_long_enough_is_whole():
    """Nothing is cut, and nothing says so."""
    log = await log_of_failure(ValueError("x" * LONGEST))

    assert f"ValueError: {'x' * LONGEST}" == log.to_dict()["response_cause"]


SECRETS = {
    "password": f"https://user:{SECRET}@host/",
    "user": f"https://{SECRET}@host/",
    "user with a blank": f"https://us er:{SECRET}@host/",
    "password with a blank": f"https://user:{SECRET} {SECRET}@host/",
    "password with a slash": f"https://user:p/{SECRET}@host/",
    "parameter": f"https://host/?token={SECRET}&page=2",
    "quoted": f"https://host/?back={quote(f'https://u:{SECRET}@host/', safe='')}",
    "quoted twice": "https://host/?back="
    + quote(quote(f"https://u:{SECRET}@host/", safe=""), safe=""),
    "JSON": f'?data={{"url": "https://u:{SECRET}@host", "token": "{SECRET}"}}',
    "quoted JSON": f"?data=%7B%22token%22%3A%22{SECRET}%22%7D",
    "bytes": f"Invalid header b'sid={SECRET}'",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
async def test_cut_never_shows_a_part_of_a_secret(text):
    """Wherever it falls, in a URL, in its password, or before the "@" that tells."""
    for before in range(LONGEST - len(text) - 1, LONGEST + 1):
        words = (
            "word " * (before // 5) + "w" * (before % 5 - 1) + " " * (before % 5 > 0)
        )
        error = ValueError(f"{words}{text} {'x' * 100}")
        log = await log_of_failure(error)

        assert "hunt" not in log.to_dict()["response_cause"]


@pytest.mark.parametrize(
    "unit",
    [
        "//",
        "//a:",
        "//a b:c ",
        "%",
        "%41",
        "\\",
        "http://a b:c@ ",
        "?a=",
        "b'",
        " ",
        "x",
    ],
)
async def test_hostile_text_takes_no_time(unit):
    """Five megabytes of anything take a view no longer than four kilobytes."""
    log = await log_of_failure(ValueError(unit * (MANY // len(unit))))
    started = time.process_time()
    cause = log.to_dict()["response_cause"]

    assert time.process_time() - started < 0.5
    assert len(cause) < LONGEST + ROOM
    assert cause.endswith(" more characters)")


INVALID = [
    f"http://us er:{SECRET}@host:99999/",
    f"http://us\ter:{SECRET}@host:99999/",
    f"http://us er:{SECRET}@[host/",
    f"http://user:{SECRET} {SECRET}@host:99999/",
    f"http://user:1 {SECRET}@host:99999/",
    f"http://us er:{SECRET}/{SECRET}@host:99999/",
    f"http://{SECRET} {SECRET}@host:99999/",
    f"http://user:a\n{SECRET}@host:99999/",
    f"//us er:{SECRET}@host:99999/",
    f"http://host:99999/?token={SECRET}&back=//us er:{SECRET}@host/",
]


def views(log, path):
    """Return all views of a log, one after the other."""
    console = Console(file=io.StringIO(), width=300, force_terminal=True)
    console.print(log)
    log.to_svg(path / "call.svg")
    formatters = (
        LogFormatter.text(),
        LogFormatter.json(),
        LogFormatter.json(nested=True),
    )
    lines = [
        f"{each.format_request(log)} {each.format_response(log)}" for each in formatters
    ]
    logs = [repr(log), log.render(), str(log.to_dict()), *map(repr, log.children)]
    pictures = [
        console.file.getvalue(),
        (path / "call.svg").read_text(encoding="utf-8"),
    ]
    return "\n".join([*logs, *lines, *pictures, repr(log.request)])


@pytest.mark.parametrize("url", INVALID)
async def test_password_in_an_invalid_url_is_in_no_view(url, tmp_path):
    """A blank in it, or a port that is none, and it is a URL no more."""
    with pytest.raises(aiohttp.InvalidURL) as caught:
        await response_of(connected(None, retrying(0.0, max_total_attempts=1)), url)
    log = RequestLog.of(caught.value)

    assert SECRET not in views(log, tmp_path)
    assert "host:99999" in log.render() or "[host" in log.render()


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            f"cannot get http://us er:{SECRET}@host/ twice",
            "cannot get http://****@host/ twice",
        ),
        (f"no http://user:{SECRET} {SECRET}@host/", "no http://****@host/"),
        (f"http://us er:a@{SECRET}@h/ or //b@c", "http://****@h/ or //****@c"),
        ("no //host:80 for a@b", "no //host:80 for a@b"),
        ("no http://host: ask a@b", "no http://host: ask a@b"),
        ("// see a: b@c", "// see a: b@c"),
    ],
)
async def test_password_in_a_text_about_an_invalid_url(said, shown, tmp_path):
    """Code around a session puts the URL into an error of its own."""
    log = await log_of(session([LookupError(said)]))

    assert SECRET not in views(log, tmp_path)
    assert f"LookupError: {shown}" == log.to_dict()["response_cause"]


async def test_long_invalid_url_takes_no_time():
    """Five million blanks take a view no longer than four thousand."""
    url = f"http://us er:{SECRET}" + "\t" * 5_000_000
    log = await log_of(session([aiohttp.InvalidURL(url)]))
    started = time.process_time()
    cause = log.to_dict()["response_cause"]

    assert time.process_time() - started < 0.5

    assert cause.endswith(" more characters)")

    assert SECRET not in cause
