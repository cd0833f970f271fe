"""Hostile input from a server or a caller."""

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp
import pytest
from hostile_answers import answer, assert_is_one_line_per_entry, chain, outcome_of
from stream_server import StreamServer

from aioretry_smithy import LogFormatter, SessionBuilder, capture_logs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
FORMATTERS = [LogFormatter.text(), LogFormatter.json()]
each_formatter = pytest.mark.parametrize("formatter", FORMATTERS, ids=repr)


@asynccontextmanager
async def listening(talk):
    """Serve each connection with a function; give the URL."""
    async with StreamServer(talk) as server:
        yield server.url()


async def test_header_that_is_longer_than_aiohttp_takes_is_its_failure(serve):
    """Ten kilobytes are no hint but an answer that cannot be read."""
    url = await serve([answer("503 Busy", b"Retry-After: " + b"9" * 10240)])
    with capture_logs() as logs:
        error = await outcome_of(chain(), url)

    assert issubclass(error, aiohttp.ClientError)
    assert 2 == logs[0].total_attempts
    assert_is_one_line_per_entry(logs[0])


@pytest.mark.parametrize(
    "status",
    [
        b"000 Nothing",
        b"012 Odd",
        b"099 Odd",
        b"299 Odd",
        b"399 Odd",
        b"499 Odd",
        b"599 Odd",
        b"600 Odd",
        b"999 Odd",
        b"1000 Odd",
        b"99999999999999999999 Odd",
        b"-10 Odd",
        b"50 Odd",
        b"abc Odd",
        b"",
        b"503",
        b"503 ",
        b"503   ",
        b"503 " + b"x" * 5000,
        b"503 \x1b[31mRed\x1b[2J",
        b"503 a\rb",
        b"503 a\x00b",
        b"503 a\x7f\x08\x08\x08",
        b"503 \xff\xfe",
        "503 \u202e\u2028\u0085\u200b".encode(),
        b"200 OK\r\nX: \x1b[2J",
        b"200 OK\r\nX: a\rb",
        b"200 OK\r\nX:\r\n folded",
        b"200 OK\r\n: no name",
        b"200 OK\r\nno colon",
    ],
    ids=repr,
)
@each_formatter
async def test_odd_answer_is_what_aiohttp_makes_of_it(serve, status, formatter, caplog):
    """A chain changes nothing for the caller, and each entry of a log is one line."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")
    url = await serve([answer(status)])
    with capture_logs() as logs:
        bare = await outcome_of(SessionBuilder(), url)
        decorated = await outcome_of(chain(formatter), url)

    assert bare == decorated
    assert_is_one_line_per_entry(logs[1])
    assert 2 * logs[1].total_attempts == len(caplog.records)
    assert all(record.getMessage().isprintable() for record in caplog.records)


@pytest.mark.parametrize(
    "options",
    [
        {"headers": {"X-Me": "a\r\nEvil: 1"}},
        {"headers": {"X-Other": "a\r\nEvil: 1"}},
        {"headers": {"X-Other": "a\nEvil: 1"}},
        {"headers": {"X\r\nEvil": "1"}},
        {"headers": {"X-Other": "a\x00b"}},
        {"headers": {"X-Other": "\u2028\u202e\x85"}},
        {"headers": {"X-Other": "\x1b[2J"}},
        {"headers": {"X-Other": "\udcff"}},
        {"method": "GE\r\nT"},
        {"method": "GET / HTTP/1.1\r\nEvil: 1\r\n\r\n"},
        {"params": {"a\r\nEvil: 1": "b\r\nEvil: 1"}},
        {"params": "a=\x1b[2J"},
        {"cookies": {"a": "b\r\nEvil: 1"}},
        {"path": "\r\nEvil: 1"},
        {"path": "?q=\r\nEvil: 1\x1b[2J\u2028"},
        {"path": "#\r\nEvil: 1"},
        {"data": b"a\r\n\r\nGET / HTTP/1.1\r\n\r\n"},
    ],
    ids=repr,
)
@each_formatter
async def test_what_a_caller_lets_through_is_not_made_worse(options, formatter, caplog):
    """The server gets what it would get from aiohttp alone, or nothing as well."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")
    heads = []

    async def talk(reader, writer):
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK)
        await writer.drain()

    given = {name: options[name] for name in options if name != "path"}
    with capture_logs() as logs:
        async with listening(talk) as base:
            url = base + options.get("path", "")
            bare = await outcome_of(SessionBuilder(), url, **given)
            decorated = await outcome_of(chain(formatter), url, **given)

    assert bare == decorated
    assert 1 == len(set(heads)) or not heads
    assert all(b"\nEvil" not in head for head in heads)
    assert_is_one_line_per_entry(logs[1])
    assert 2 == len(caplog.records)
    assert all(record.getMessage().isprintable() for record in caplog.records)


@pytest.mark.parametrize("length", [10**15, 2**63 - 1, 10**30])
async def test_gigantic_answer_is_hung_up_on(length):
    """Nobody reads what would not end this year for the sake of a connection."""
    ended = asyncio.Event()
    heads = [b"HTTP/1.1 503 Busy\r\nContent-Length: %d\r\n\r\n" % length, OK]

    async def talk(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(heads[0])
        heads.reverse()
        await reader.read()  # until the other side hangs up
        ended.set()

    with capture_logs() as logs:
        async with listening(talk) as url:
            for _ in range(3):
                connector = aiohttp.TCPConnector(limit=1)
                outcome = await outcome_of(chain(connector=connector), url)
                await ended.wait()

                assert (200, b"ok") == (outcome[0], outcome[3])

    assert [2, 2, 2] == [log.total_attempts for log in logs]
    # What draining may take is 0.1 s; a busy machine is not slow three times.
    assert min(log.duration for log in logs) < 0.1


@pytest.mark.parametrize("pause", [0.0, 0.01], ids=["flood", "drip"])
@pytest.mark.parametrize("coding", [b"chunked", b"identity"])
async def test_endless_error_body_costs_a_bounded_time(pause, coding):
    """A flood and a drip are both cut, and their connection with them."""
    written = 0
    chunk = b"x" * (1 if pause else 65536)
    if coding == b"chunked":
        chunk = b"%x\r\n%b\r\n" % (len(chunk), chunk)
    head = b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n"
    if coding == b"identity":
        head = b"HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\n"
    heads = iter([head, None])

    async def talk(reader, writer):
        nonlocal written
        await reader.readuntil(b"\r\n\r\n")
        said = next(heads)
        writer.write(said or OK)
        while said:
            writer.write(chunk)
            await writer.drain()
            written += len(chunk)
            await asyncio.sleep(pause)

    with capture_logs() as logs:
        async with listening(talk) as url:
            connector = aiohttp.TCPConnector(limit=1)
            outcome = await outcome_of(chain(connector=connector), url)

    assert 200 == outcome[0]
    assert 2 == logs[0].total_attempts
    assert logs[0].duration < 1.0
    # What the buffers of the system hold besides is not for us to say.
    assert written < 64 * 1024 * 1024
