"""Responses of other people's classes: a chain reads what there is, and leaves them be.

Those of test kits come from a function in the place of ``ClientSession._request``.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from http import HTTPStatus
from types import SimpleNamespace
from unittest.mock import AsyncMock, MagicMock, Mock

import aiohttp
import pytest
from aiohttp import ClientSession
from chains import SAFELY, connected, log_of, retrying
from fake_responses import sent_to
from multidict import CIMultiDict
from yarl import URL

from aioretry_smithy import (
    CircuitBreakerClient,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    ContentPreviewingClient,
    HedgingClient,
    HttpRequest,
    LogFormatter,
    LoggingClient,
    RefreshingClient,
    RequestLog,
    ResumingClient,
    RetryingClient,
    RetryRuleWithContent,
    SessionBuilder,
    capture_logs,
    client_decorator,
    decorate,
    new_response,
)

ADDRESS = "http://h/orders"


class KitResponse:
    """An answer of Home Assistant's test kit: all that its integrations read."""

    def __init__(self, status=200, headers=None):
        self.status = HTTPStatus(status)
        self.headers = CIMultiDict(headers or {})
        self.url = URL(ADDRESS)
        self.cookies = {}
        self.closed = 0

    @property
    def content(self):
        stream = aiohttp.StreamReader(
            Mock(_reading_paused=False), 2**16, loop=asyncio.get_running_loop()
        )
        stream.feed_data(b"{}")
        stream.feed_eof()
        return stream

    async def read(self):
        return b"{}"

    def release(self):
        self.closed += 1

    def close(self):
        self.closed += 1


class BriefResponse:
    """An answer as many tests write it."""

    def __init__(self, status=200, headers=None):
        self.status = status
        if headers is not None:
            self.headers = headers

    async def text(self):
        return "{}"


class SlottedResponse:
    """An answer that nothing can be written on."""

    __slots__ = ("headers", "status")

    def __init__(self, status=200, headers=None):
        self.status, self.headers = status, headers or {}

    def close(self):
        """Do nothing: there is no connection."""


@dataclass(frozen=True)
class FrozenResponse:
    """An answer that refuses to be written on."""

    status: int = 200
    headers: dict | None = None
    history: tuple | None = None


def of_aiohttp(status=200, headers=None):
    """Make a response of aiohttp's class that does not know its request."""
    response = new_response(HttpRequest("GET", ADDRESS), status, headers=headers)
    vars(response)["_request_info"] = None
    return response


def like_aiohttp(status=200, headers=None):
    return MagicMock(spec=aiohttp.ClientResponse, status=status, connection=None)


def sealed(status=200, headers=None):
    return MagicMock(spec_set=["headers", "status"], status=status)


def namespace(status=200, headers=None):
    return SimpleNamespace(
        status=status,
        headers=headers or {},
        history=None,
        request_info=None,
        close=list,
        release=list,
    )


KINDS = {
    "test kit": KitResponse,
    "brief": BriefResponse,
    "slots": SlottedResponse,
    "frozen": FrozenResponse,
    "aiohttp's": of_aiohttp,
    "like aiohttp's": like_aiohttp,
    "sealed": sealed,
    "namespace": namespace,
}


async def token():
    return "t"


CHAINS = {
    "nothing": [],
    "log": [LoggingClient.new_decorator(formatter=LogFormatter.json(nested=True))],
    "preview": [ContentPreviewingClient.new_decorator(100)],
    "retry": [retrying(SAFELY)],
    "breaker": [CircuitBreakerClient.new_per_host_decorator()],
    "limit": [ConcurrencyLimitingClient.new_decorator(ConcurrencyLimit.fixed(1))],
    "hedge": [HedgingClient.new_decorator(0.1)],
    "resume": [ResumingClient.new_decorator()],
    "refresh": [RefreshingClient.new_decorator(token, hosts=["http://h"])],
}

of_each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
through_each_chain = pytest.mark.parametrize(
    "decorators", [*CHAINS.values()], ids=CHAINS
)


def answering(monkeypatch, *answers):
    """Let aiohttp be a function that returns the answers one after another."""
    left = [*answers]

    async def answer(session, method, url, **options):
        return left.pop(0)

    sent_to(answer, monkeypatch)
    return left


@pytest.mark.slow
@of_each_kind
@through_each_chain
async def test_any_class_passes_through(kind, decorators, monkeypatch):
    """The caller gets the very object, and the log has its status."""
    given = kind(201)
    answering(monkeypatch, given)
    with capture_logs() as logs:
        async with connected("http://h", *decorators) as session:
            got = await session.get("/orders")
    log = logs[0]

    assert given is got
    assert (201, "GET") == (log.response_status, log.request_method)
    assert log.is_complete
    assert log.is_success


@of_each_kind
async def test_all_views_of_its_log_can_be_made(kind, monkeypatch):
    """What it does not say is left out of them."""
    answering(monkeypatch, kind())
    log = await log_of(connected("http://h", headers={"A": "1"}))

    assert "200" in log.render()
    assert 200 == log.to_dict()["response_status"]
    assert json.dumps([log.to_dict(), log.to_har()], default=str)
    assert "A: 1" in log.to_curl()
    assert "1" == log.request_headers["a"]


@pytest.mark.parametrize("kind", [KitResponse, namespace, of_aiohttp])
@pytest.mark.parametrize("name", ["Retry-After", "retry-after"])
async def test_its_headers_are_heeded(kind, name, monkeypatch):
    """In whichever case a test has written them."""
    answering(monkeypatch, kind(503, {name: "7"}), kind())
    log = await log_of(connected("http://h", retrying(SAFELY)))

    assert [503, 200] == [each.response_status for each in log.children]
    assert (7.0, 7.0) == (log.children[0].delay, log.total_duration)


@pytest.mark.parametrize("kind", [KitResponse, namespace, of_aiohttp, like_aiohttp])
async def test_the_standard_chain_tries_again(kind, monkeypatch):
    """What can be closed can be retried, with or without a look at the body."""
    given = kind()
    left = answering(monkeypatch, kind(503), given)
    async with SessionBuilder.standard("http://h", logging=None).build() as session:
        got = await session.get("/orders")

    assert given is got
    assert not left


@pytest.mark.parametrize(("kind", "content"), [(KitResponse, b"{}"), (of_aiohttp, b"")])
async def test_content_is_read_whole(kind, content, monkeypatch):
    """By whatever method the class has."""
    seen = []
    rule = RetryRuleWithContent(on_content=seen.append)
    answering(monkeypatch, kind())
    await log_of(connected("http://h", RetryingClient.new_decorator(rule)))

    assert [content] == seen


async def test_replaced_answer_is_the_one_in_the_log(monkeypatch):
    """Two without headers are told apart by their status."""

    @client_decorator
    async def fall_back(delegate, ctx, request):
        await delegate.execute(ctx, request)
        return BriefResponse(203)

    answering(monkeypatch, BriefResponse(500))
    log = await log_of(connected("http://h", fall_back))

    assert 203 == log.response_status


async def test_function_in_place_of_the_request_method():
    """A test kit puts its own there; decorators go around it."""
    given = KitResponse()
    session = ClientSession()
    vars(session)["_request"] = AsyncMock(return_value=given)
    decorate(session, LoggingClient.new_decorator())
    async with session:
        async with asyncio.timeout(1.0):
            got = await session.get(ADDRESS)

    assert given is got
    assert 200 == RequestLog.of(got).response_status


async def test_refused_status_of_a_sealed_response(monkeypatch):
    """The error of ``raise_for_status`` goes out, though no log is attached."""

    async def refuse(response):
        raise LookupError

    answering(monkeypatch, SlottedResponse(404))
    async with connected("http://h", raise_for_status=refuse) as session:
        with pytest.raises(LookupError):
            await session.get("/orders")


async def test_what_has_no_status_is_no_response(monkeypatch):
    """Python says what is missing."""
    answering(monkeypatch, object())
    async with connected("http://h") as session:
        with pytest.raises(AttributeError, match="headers"):
            await session.get("/orders")
