"""Passwords in what is no URL are in no view of the log."""

from __future__ import annotations

import io
import time

import aiohttp
import pytest
from chains import connected, log_of, response_of, retrying, session

from aioretry_smithy import LogFormatter, RequestLog

pytest.importorskip("rich", reason="needs the extra cli")

from rich.console import Console

SECRET = "hunter2"
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
