"""Answers of servers and ways of callers, for stories."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp
from fault_server import End, Fault, FaultServer, answer, cut, response

from aioretry_smithy import (
    Backoff,
    RequestLog,
    RetryConfig,
    RetryStrategy,
    request_options,
)

NOW = Backoff.without_delay()
BODY = b"0123456789" * 100
FINE = answer(200, b"fine", "X-Answer: 42", "Set-Cookie: a=1; Path=/")
BUSY = answer(503, b"try again")
HALF = response(200, BODY)[:-500]
CUT_BODY = Fault(send=(HALF,), end=End.CLOSE)
STALLED = Fault(send=(HALF,), end=End.STALL)
SILENT = cut(end=End.STALL)


@dataclass(frozen=True)
class Answers:
    """The answers to the requests of a call, in turn, and the one for the rest."""

    faults: Callable
    options: dict = field(default_factory=dict)
    then: Fault = FINE
    connections: tuple[End, ...] = ()
    server: type[FaultServer] = FaultServer
    again: bool = True
    """Whether one more request follows, which shows what is free then."""


def answers(*faults, **options):
    """Describe answers that need no witness, and the options that call for them."""
    return Answers(lambda witness: [*faults], options)


def always(fault, **options):
    """Describe one answer for all requests."""
    again = fault.end is not End.STALL
    return Answers(lambda witness: [], options, fault, again=again)


def looked_at(witness, *parts):
    """Look at the logs when the request has come, and while it is answered."""
    for number, part in enumerate(parts):
        witness.look(f"before part {number} of the answer")
        yield part


ANSWERS = {
    "200": answers(FINE),
    "204": answers(answer(204)),
    "large": answers(large := answer(200, BODY * 300)),
    "large each time": always(large),
    "chunked": answers(
        Fault(
            send=(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
                0.001,
                b"2\r\nde\r\n0\r\n\r\n",
            )
        )
    ),
    "401": answers(answer(401, b"who")),
    "404": answers(answer(404, b"gone")),
    "404 each time": always(answer(404, b"gone")),
    "503, 200": answers(BUSY),
    "503, 503, 200": answers(BUSY, BUSY),
    "503": always(BUSY),
    "500, 404": answers(answer(500, b"bad"), answer(404, b"gone")),
    "200, 503, 200": answers(FINE, BUSY),
    "429, soon": answers(answer(429, b"slow", "x-amz-retry-after: 1")),
    "429, late": answers(answer(429, b"slow", "Retry-After: 3600")),
    "cut before the headers": answers(cut(end=End.RESET)),
    "cut in the headers": answers(cut(b"HTTP/1.1 200", end=End.CLOSE)),
    "cut each time": always(cut(end=End.RESET)),
    "cut in the body": answers(CUT_BODY),
    "no HTTP": always(answer_of_nonsense := Fault(send=(b"nonsense\r\n\r\n",))),
    "no HTTP, 200": answers(answer_of_nonsense),
    "refused": Answers(lambda witness: [], {}, FINE, (End.RESET,)),
    "302, 200": answers(answer(302, b"there", "Location: /there")),
    "302, 503, 200": answers(answer(302, b"there", "Location: /there"), BUSY),
    "302, not followed": answers(
        answer(302, b"there", "Location: /there"), allow_redirects=False
    ),
    "redirects without end": always(answer(302, b"", "Location: /again")),
    "303, cut, 200": answers(answer(303, b"", "Location: /there"), cut(end=End.RESET)),
    "200, looked at": Answers(
        lambda witness: [Fault(send=looked_at(witness, response(200, BODY), b""))]
    ),
    "200, looked at between": Answers(
        lambda witness: [Fault(send=looked_at(witness, HALF, b"x" * 500))]
    ),
    "503, 200, looked at": Answers(
        lambda witness: [
            Fault(send=looked_at(witness, response(503, b"try again"))),
            Fault(send=looked_at(witness, response(200, BODY))),
        ]
    ),
    "cut, 200, looked at": Answers(
        lambda witness: [
            cut(end=End.RESET),
            Fault(send=looked_at(witness, response(200, BODY))),
        ]
    ),
}
"""By name; the last answer goes on."""

SLOW_ANSWERS = {
    "silence, then 200": answers(SILENT),
    "silence past the deadline": always(SILENT, timeout=0.4),
    "503, then silence past the deadline": answers(BUSY, SILENT, timeout=0.4),
    "body stalls past the deadline": answers(STALLED, timeout=0.4),
    "body stalls past the deadline of a block": answers(STALLED, block=0.4),
    "body stalls past sock_read": answers(
        STALLED, timeout=aiohttp.ClientTimeout(sock_read=0.4)
    ),
    "silence past sock_read, then 200": answers(
        SILENT, timeout=aiohttp.ClientTimeout(sock_read=0.4)
    ),
}
"""The answers that take a limit of time to end."""


def told(response):
    """Tell what a response is, but not its body."""
    return {
        "status": (response.status, response.reason),
        "method": (response.method, str(response.url.relative())),
        "headers": sorted(response.headers.items()),
        "cookies": response.cookies.output(),
        "history": [(hop.status, hop.url.path) for hop in response.history],
        "sent": sorted(response.request_info.headers.items()),
        "closed": response.closed,
        "connected": response.connection is not None,
        "ends": response.content.at_eof(),
    }


async def read(witness, call, server):
    async with call() as response:
        witness.look("at the headers")
        body = await response.read()
        witness.look("after the body")
        return told(response), body, await response.text()


async def awaited(witness, call, server):
    response = await call()
    witness.look("at the headers")
    return told(response), await response.read(), told(response)


async def streamed(witness, call, server):
    async with call() as response:
        size = 0
        async for chunk in response.content.iter_chunked(400):
            if not size:
                witness.look("after the first chunk")
            size += len(chunk)
        return told(response), size


async def left_early(witness, call, server):
    async with call() as response:
        first = await response.content.read(2)
        witness.look("before the exit")
        return told(response), first


async def never_read(witness, call, server):
    async with call() as response:
        return told(response)


async def forgotten(witness, call, server):
    response = await call()
    response.close()
    return told(response)


async def released(witness, call, server):
    response = await call()
    response.release()
    witness.look("after the release")
    return told(response)


async def refused(witness, call, server):
    async with call() as response:
        response.raise_for_status()
        return told(response), await response.json(content_type=None)


async def failed_in_the_block(witness, call, server):
    async with call() as response:
        raise LookupError(response.status)


async def twice_at_once(witness, call, server):
    async with call() as first, call() as second:
        witness.look("with two calls open")
        return [told(each) for each in (first, second)], await second.read()


async def found_by_its_log(witness, call, server):
    response = await call()
    log = RequestLog.of(response)
    waiter = asyncio.ensure_future(log.when_complete())
    await asyncio.sleep(0)
    before = waiter.done()
    body = await response.read()
    return body, before, await waiter is log, log in witness.logs


async def cancelled_before_headers(witness, call, server):
    task = asyncio.ensure_future(_awaited(call()))
    await server.asked()
    witness.look("while it waits")
    task.cancel("enough")
    try:
        await task
    except asyncio.CancelledError as error:
        return "cancelled", error.args, RequestLog.of(error) in witness.logs
    return "not cancelled"


async def cancelled_in_the_body(witness, call, server):
    response = await call()
    task = asyncio.ensure_future(response.read())
    await asyncio.sleep(0.01)
    witness.look("while it reads")
    task.cancel("enough")
    try:
        await task
    except asyncio.CancelledError as error:
        return "cancelled", error.args, told(response)
    return "not cancelled"


async def timed_out_outside(witness, call, server):
    async with asyncio.timeout(0.4), call() as response:
        return told(response), await response.read()


async def in_a_task_group(witness, call, server):
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_read(call())) for _ in range(3)]
    return [task.result() for task in tasks]


async def without_retry(witness, call, server):
    with request_options(retry=RetryConfig.no_retry()):
        return await _read(call())


async def retried_otherwise(witness, call, server):
    config = RetryConfig(RetryStrategy.on_server_error_status(NOW), 2)
    with request_options(retry=config, idempotent=True, attributes={"block": 1}):
        return await _read(call())


async def with_time_of_a_block(witness, call, server):
    with request_options(response_timeout=5.0):
        return await _read(call())


async def five_in_turn(witness, call, server):
    return [await _read(call()) for _ in range(5)]


async def _awaited(call):
    return await call


async def _read(call):
    async with call as response:
        return response.status, await response.read()


WAYS = {
    "read": read,
    "awaited": awaited,
    "streamed": streamed,
    "left early": left_early,
    "never read": never_read,
    "forgotten": forgotten,
    "released": released,
    "refused": refused,
    "failed in the block": failed_in_the_block,
    "twice at once": twice_at_once,
    "found by its log": found_by_its_log,
    "in a task group": in_a_task_group,
    "without retry": without_retry,
    "retried otherwise": retried_otherwise,
    "with time of a block": with_time_of_a_block,
    "five in turn": five_in_turn,
}
"""By name."""

CANCELLED = {
    "before headers": (cancelled_before_headers, always(SILENT)),
    "in the body": (cancelled_in_the_body, always(STALLED)),
    "outside, before headers": (timed_out_outside, always(SILENT)),
    "outside, in the body": (timed_out_outside, always(STALLED)),
    "in the second attempt": (timed_out_outside, answers(BUSY, SILENT)),
}
"""By name: calls that are given up by who made them."""


@dataclass(frozen=True)
class Request:
    """A request, with options and session arguments made anew each time."""

    method: str = "GET"
    path: str = "/shop?where=here"
    options: Callable = dict
    session: Callable = dict


def request(method="GET", **options):
    """Describe a request whose options may be used again."""
    return Request(method, options=lambda: {**options})


def of_session(**session):
    """Describe a request of a session with arguments of its own."""
    return Request(session=lambda: {**session})


def made(method, make):
    """Describe a request whose body is made anew each time."""
    return Request(method, options=lambda: {"data": make()})


async def generated():
    yield b"in "
    yield b"parts"


def form():
    form = aiohttp.FormData({"a": "1"})
    form.add_field("file", b"content", filename="name.txt")
    return form


async def accept(response):
    if response.status == 503:
        raise LookupError(await response.text())


GET = Request()
REQUESTS = {
    "GET": GET,
    "HEAD": request("HEAD"),
    "POST of nothing": request("POST"),
    "POST of bytes": request("POST", data=b"body"),
    "PUT of bytes": request("PUT", data=b"body"),
    "PUT of text": request("PUT", data="text"),
    "PUT of a bytearray": made("PUT", lambda: bytearray(b"body")),
    "POST of JSON": request("POST", json={"a": [1, None]}),
    "PUT of JSON": request("PUT", json={"a": [1, None]}),
    "PUT of a dict": request("PUT", data={"a": "1"}),
    "PUT of a form": made("PUT", form),
    "PUT of a file": made("PUT", lambda: io.BytesIO(b"file" * 99)),
    "PUT of a generator": made("PUT", generated),
    "PUT of a factory": request("PUT", data=lambda: b"made"),
    "PUT of what cannot be sent": request("PUT", data=object()),
    "PUT of what is no JSON": request("PUT", json=object()),
    "POST that is idempotent": request(
        "POST", json=[1], headers={"Idempotency-Key": "7"}
    ),
    "headers": request(headers={"X-A": "1", "Authorization": "secret"}),
    "count of its own": request(headers={"armeria-retry-count": "7"}),
    "params": request(params={"a": "1 2", "token": "secret"}),
    "cookies": request(cookies={"a": "2"}),
    "all of them": request(
        "PUT", json=1, headers={"X-A": "1"}, params=[("a", "1")], cookies={"b": "2"}
    ),
    "auth": Request(options=lambda: {"auth": aiohttp.BasicAuth("me", "pw")}),
    "timeout, a number": request(timeout=5),
    "timeout, None": request(timeout=None),
    "timeout, zero": request(timeout=0),
    "timeout, a total": request(timeout=aiohttp.ClientTimeout(total=5)),
    "timeout, without a total": request(timeout=aiohttp.ClientTimeout(sock_read=5)),
    "timeout, longer": request(timeout=300),
    "raise_for_status": request(raise_for_status=True),
    "raise_for_status, a function": request(raise_for_status=accept),
    "raise_for_status=False": request(raise_for_status=False),
    "bad option": request(nonsense=1),
    "bad header": request(headers={"X-A": "\r\n"}),
    "bad params": request(params={"a": object()}),
    "bad timeout": request(timeout="5"),
    "bad URL": Request(path="http://["),
    "bad scheme": Request(path="ftp://127.0.0.1/"),
    "path without a slash": Request(path="shop"),
    "refusing session": of_session(raise_for_status=True),
    "session that refuses by a function": of_session(raise_for_status=accept),
    "session with headers": of_session(headers={"X-Of-Session": "1"}),
    "session with cookies": Request(
        session=lambda: {
            "cookies": {"c": "3"},
            "cookie_jar": aiohttp.CookieJar(unsafe=True),
        }
    ),
    "session with a timeout": of_session(timeout=aiohttp.ClientTimeout(total=20)),
    "session without a timeout": of_session(timeout=aiohttp.ClientTimeout(total=None)),
    "session with one connection": Request(
        session=lambda: {"connector": aiohttp.TCPConnector(limit=1)}
    ),
}
"""By name."""
