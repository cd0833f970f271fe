"""No view of a call shows its secrets, nor what aiohttp composes of them."""

import asyncio
import json
import logging
import re

import aiohttp
import pytest
from chains import SAFELY, connected, retrying
from hostile_answers import (
    answer,
    assert_is_one_line_per_entry,
    chain,
    outcome_of,
    views_of,
)
from multidict import CIMultiDict
from pairs import each_pair

from aioretry_smithy import LogFormatter, LoggingClient, capture_logs, client_decorator
from aioretry_smithy.__main__ import main

FORMATTERS = [LogFormatter.text(), LogFormatter.json()]
each_formatter = pytest.mark.parametrize("formatter", FORMATTERS, ids=repr)
MARK = "c4n4ry"
"""No view of anything may show it."""
HEADERS_WITH_SECRETS = [
    ("Authorization", f"Bearer {MARK}"),
    ("proxy-authorization", f"Basic {MARK}"),
    ("COOKIE", f"sid={MARK}"),
    ("X-Me", MARK),
    ("Referer", f"https://me:{MARK}@example.com/?api_key={MARK}"),
]
# To aiohttp a user in the URL and an Authorization header are one too many.
BY_USER = {"userinfo": f"me:{MARK}@", "headers": HEADERS_WITH_SECRETS[1:]}
BY_HEADER = {"userinfo": "", "headers": HEADERS_WITH_SECRETS}
BOTH = {"userinfo": f"me:{MARK}@", "headers": HEADERS_WITH_SECRETS}


def secretive(url, userinfo):
    """Put a secret into every place of a URL that usually holds one."""
    url = url.replace("//", f"//{userinfo}")
    return f"{url}orders?signature={MARK}&page=2#token={MARK}"


SECRETIVE = [
    b"Set-Cookie: sid=" + MARK.encode(),
    b"set-cookie: sid2=" + MARK.encode(),
    b"X-Me: " + MARK.encode(),
    b"Link: <https://me:" + MARK.encode() + b"@a/?token=" + MARK.encode() + b">",
]


@each_pair(
    said=[
        answer("200 OK", *SECRETIVE),
        answer("503 Busy", *SECRETIVE),
        answer("503 Busy", b"Set-Cookie: sid=" + MARK.encode() + b"\rX: 1"),
        answer("503 Busy", b"Set-Cookie : sid=" + MARK.encode()),
        answer("503 Busy", b"Set-Cookie: sid=" + MARK.encode() + b"\x00"),
        answer("503 Busy", b"Set-Cookie: s=1;\r\n sid=" + MARK.encode() + b"\r 'x'"),
        answer("503 Busy", b"Set-Cookie: sid=" + MARK.encode() * 4000),
        b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n" + MARK.encode(),
        answer("302 Go", f"Location: ?token={MARK}".encode()),
        answer("302 Go", f"Location: http://me:{MARK}@127.0.0.1:9/".encode()),
        answer("302 Go", f"Location: http://me:{MARK}@:99999/".encode()),
        answer("302 Go", f"Location: ftp://me:{MARK}@a/?token={MARK}".encode()),
        b"",
        b"garbage",
    ],
    place=[BY_USER, BY_HEADER, BOTH],
    formatter=FORMATTERS,
    ids=lambda value: repr(value)[:48],
)
async def test_secrets_are_in_no_view(serve, said, place, formatter, caplog):
    """Lines, trees, notes and texts show no secret after any outcome."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")
    shown = []

    @client_decorator
    async def looking(delegate, ctx, request):
        shown.extend([repr(ctx), repr(request), repr(ctx.log)])
        return await delegate.execute(ctx, request)

    url = await serve([said] if said.startswith(b"HTTP") else [said, None])
    with capture_logs() as logs:
        async with chain(formatter).decorator(looking).build() as session:
            try:
                await session.get(
                    secretive(url, place["userinfo"]),
                    headers=CIMultiDict(place["headers"]),
                    params={"access_token": MARK},
                    raise_for_status=True,
                )
            except (aiohttp.ClientError, ValueError) as error:
                shown += getattr(error, "__notes__", ())
    log = logs[0]
    shown += [log.render(), json.dumps(log.to_dict()), repr(log)]
    shown += [repr(child) for child in log.children]
    shown += [record.getMessage() for record in caplog.records]
    shown += [logging.Formatter().format(record) for record in caplog.records]

    assert [] == [text for text in shown if MARK in text]
    assert_is_one_line_per_entry(log)


@pytest.mark.parametrize(
    "url",
    [
        f"http://me:{MARK}@:1",
        f"http://me:{MARK}@/",
        f"http://me:{MARK}@127.0.0.1:99999/",
        f"http://me:{MARK}@127.0.0.1:port/",
        f"http://me:{MARK}@[::1/",
        f"http:///me:{MARK}@127.0.0.1/",
        f"ftp://me:{MARK}@127.0.0.1/?token={MARK}",
        f"//me:{MARK}@127.0.0.1/",
        f"http://me:{MARK}/x@127.0.0.1/",
    ],
)
@each_formatter
async def test_secrets_in_what_is_no_url_are_in_no_view(url, formatter, caplog):
    """A URL that cannot even be parsed is masked all the same."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")
    with capture_logs() as logs:
        outcome = await outcome_of(chain(formatter), url)
    shown = [logs[0].render(), json.dumps(logs[0].to_dict()), repr(logs[0])]
    shown += [record.getMessage() for record in caplog.records]
    shown.append(chain(base_url="http://a/").describe())

    assert isinstance(outcome, type)
    assert [] == [text for text in shown if MARK in text]


@pytest.mark.parametrize("place", [BY_USER, BY_HEADER], ids=["URL", "header"])
@pytest.mark.parametrize("status", ["200 OK", "503 Busy", "302 Go"])
async def test_command_line_shows_no_secret(serve, status, place, capfd):
    """The tree on standard error hides what was typed; so do its complaints."""
    said = answer(status, *SECRETIVE, f"Location: http://me:{MARK}@:99999/".encode())
    url = await serve([said])
    arguments = ["request", secretive(url, place["userinfo"])]
    arguments += ["--max-total-attempts", "2"]
    for name, value in place["headers"]:
        arguments += ["-H", f"{name}: {value}"]
    await asyncio.to_thread(main, arguments)
    shown = capfd.readouterr()

    assert "127.0.0.1" in shown.err
    assert MARK not in shown.out + shown.err


@pytest.mark.parametrize("url", [f"//me:{MARK}@a", f"http://me:{MARK}@:1"])
def test_complaint_of_the_command_line_shows_no_secret(url, capsys):
    """A complaint about a bad URL does not show the password."""
    code = main(["request", url])
    shown = capsys.readouterr()

    assert 0 != code
    assert MARK not in shown.out + shown.err


pytest.importorskip("rich", reason="needs the extra cli")

SECRET = "hunter2"
TWICE = retrying(SAFELY, max_total_attempts=2)
HEAD = (
    f"HTTP/1.1 401 {SECRET} Go\r\nSet-Cookie: sid={SECRET}\r\nX-Auth: {SECRET}\r\n"
    f"X-Place: {SECRET}\r\n"
).encode()
CUT_HEAD = "ServerDisconnectedError: Server disconnected in the head, HTTP/1.1 401"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
NO_ANSWER = {
    "cut head": (HEAD, CUT_HEAD),
    "no version": (
        f"{SECRET} HTTP\r\n\r\n".encode(),
        "ClientResponseError: the answer cannot be read: ",
    ),
    "no status": (
        f"HTTP/1.1 {SECRET}\r\n\r\n".encode(),
        "ClientResponseError: the answer cannot be read: ",
    ),
    "no SSH": (
        f"SSH-2.0-{SECRET}\r\n\r\n".encode(),
        "ClientResponseError: the answer cannot be read: ",
    ),
    "a bad header": (
        f"HTTP/1.1 200 OK\r\nSid {SECRET}: 1\r\n\r\n".encode(),
        "ClientResponseError: the answer cannot be read: ",
    ),
    "a bad chunk": (
        CHUNKED + f"{SECRET}\r\n".encode(),
        "ClientResponseError: the answer cannot be read: ",
    ),
    "a cut chunk": (
        (CHUNKED, 0.05, b"2\r\n"),
        "ClientPayloadError: Response payload is not completed: ",
    ),
    "a long line": (
        f"HTTP/1.1 200 OK\r\nX-A: {SECRET * 3000}\r\n\r\n".encode(),
        "ClientResponseError: ",
    ),
}


def showing(views):
    """Return the names of the views that show the secret."""
    return [name for name, text in views.items() if SECRET in text]


@pytest.mark.parametrize(("said", "told"), NO_ANSWER.values(), ids=NO_ANSWER)
async def test_bytes_of_a_server_are_in_no_view(serve, said, told, tmp_path, caplog):
    """A head that ends too early or cannot be read is told without what is in it."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")
    parts = said if isinstance(said, tuple) else (said,)
    url = await serve([*parts, 0.05, None])
    decorators = LoggingClient.new_decorator(), TWICE, LoggingClient.new_decorator()
    with capture_logs() as logs:
        async with connected(url, *decorators) as client:
            with pytest.raises(aiohttp.ClientError):
                async with client.get("/") as response:
                    await response.read()
    (log,) = logs
    views = views_of(log, tmp_path)

    assert [] == showing({**views, "lines": caplog.text})
    assert log.to_dict()["response_cause"].startswith(told)


async def test_what_cannot_be_read_says_what_it_was(serve):
    """The words of the parser stay: they quote nothing."""
    url = await serve([f"SSH-2.0-{SECRET}\r\n\r\n".encode(), None])
    with capture_logs() as logs:
        async with connected(url) as client:
            with pytest.raises(aiohttp.ClientResponseError):
                await client.get("/")

    said = logs[0].to_dict()["response_cause"]
    # Each release and each of the two parsers of aiohttp has words of its own.
    assert re.fullmatch(
        "ClientResponseError: the answer cannot be read: (Bad|Expected) [A-Za-z/,: ]+",
        said,
    )


class Reading:
    """A body that fails while it is read."""

    def __init__(self, error):
        self._error = error

    async def __aiter__(self):
        yield b"a"
        raise self._error


class VaultError(Exception):
    """An error of the user's own whose text is a repr of all that it knows."""

    def __init__(self, **known):
        super().__init__(known)


FAILURES = {
    "no secret": (ValueError("no more"), "ValueError: no more"),
    "no text": (ValueError(), "ValueError"),
    "a repr": (VaultError(token=SECRET, n=1), "VaultError: {'token': ****, 'n': 1}"),
    "bytes": (ValueError(SECRET.encode()), "ValueError: b'****'"),
}


@pytest.mark.filterwarnings("ignore:BasicAuth is deprecated")
@pytest.mark.parametrize(("error", "told"), FAILURES.values(), ids=FAILURES)
async def test_password_of_a_proxy_is_in_no_view(
    serve, error, told, tmp_path, caplog, monkeypatch
):
    """A body that fails is told with its error, without the connection."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")
    proxy = (await serve([1.0])).replace("//", f"//user:{SECRET}@")
    monkeypatch.setenv("http_proxy", proxy)
    decorators = LoggingClient.new_decorator(), TWICE
    with capture_logs() as logs:
        async with connected(
            "http://example.com/", *decorators, trust_env=True
        ) as client:
            with pytest.raises(aiohttp.ClientConnectionError):
                await client.put("/", data=Reading(error))
    (log,) = logs

    assert [] == showing({**views_of(log, tmp_path), "lines": caplog.text})
    assert (
        "ClientConnectionError: Failed to send the body: " + told
        == (log.to_dict()["response_cause"])
    )


async def test_failure_that_another_one_carries_is_told_likewise(serve, tmp_path):
    """A middleware may put it into the text of its own error, which is masked."""
    url = await serve([HEAD, 0.05, None])

    async def middleware(request, handler):
        try:
            return await handler(request)
        except aiohttp.ClientError as error:
            raise RuntimeError(f"no answer: {error!r}") from error

    with capture_logs() as logs:
        async with connected(url, TWICE, middlewares=(middleware,)) as client:
            with pytest.raises(RuntimeError):
                await client.get("/")

    shown = views_of(logs[0], tmp_path)
    assert [] == [each for each in shown.values() if f"sid={SECRET}" in each]
    assert [] == [each for each in shown.values() if f"'X-Auth', '{SECRET}" in each]
    await asyncio.sleep(0)
