"""The text of a failure is cut in every view, safely, and says how much was cut."""

from __future__ import annotations

import io
import json
import time
from urllib.parse import quote

import aiohttp
import pytest
from chains import SAFELY, log_of, response_of, retrying, session
from token_strategies import Plain

from aioretry_smithy import (
    LogFormatter,
    RequestLog,
    RetryingRpcClient,
    RetryStrategy,
    capture_logs,
    rpc,
    smithy,
)

pytest.importorskip("rich", reason="needs the extra cli")

from rich.console import Console

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


async def test_notes_on_a_long_failure_are_short():
    """Each has a line for an attempt."""
    errors = [TimeoutError("x" * MANY), TimeoutError("y" * MANY)]
    with pytest.raises(TimeoutError) as caught:
        await response_of(session(errors, retrying(SAFELY, max_total_attempts=2)))

    assert 2 == len(caught.value.__notes__)
    assert max(map(len, caught.value.__notes__)) < ROOM


async def test_failure_of_another_kind_of_error():
    """Groups, and those that come from others, show their own text alone."""
    group = ExceptionGroup("x" * MANY, [ValueError("y" * MANY)])
    group.__cause__ = ValueError("z" * MANY)
    log = await log_of_failure(group)
    (cause,) = {log.to_dict()["response_cause"]}

    assert cause.startswith(f"ExceptionGroup: {'x' * LONGEST}… (")
    assert len(cause) < LONGEST + ROOM


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


async def test_long_failure_of_a_function():
    """Its line is as short, with the calls inside."""

    @rpc(RetryingRpcClient.new_decorator(RetryStrategy.never()))
    async def load():
        raise LookupError("x" * MANY)

    with capture_logs() as logs, pytest.raises(LookupError):
        await load()

    assert len(LogFormatter.text().format_response(logs[0])) < LONGEST + ROOM


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
