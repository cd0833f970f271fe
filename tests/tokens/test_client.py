"""The client that sends tokens, and fetches others when they are refused."""

from __future__ import annotations

import asyncio
import io
import warnings

import aiohttp
import pytest
from chains import SAFELY, retrying, session
from fetched_tokens import BASE, Tokens, outcomes, refreshing_session, sent

from aioretry_smithy import (
    EndpointGroup,
    IdempotencyKeyClient,
    RequestLog,
    client_decorator,
)
from aioretry_smithy.testing import ScriptedTransport

with warnings.catch_warnings():
    # From 3.14 on aiohttp wants a header in its place.
    warnings.simplefilter("ignore", DeprecationWarning)
    AUTH = aiohttp.BasicAuth("me", "pw")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
class TestOwnCredentials:
    """Whoever brings credentials gets no token, and no fetch."""

    @pytest.mark.parametrize(
        ("settings", "url", "options"),
        [
            ({}, "/", {"headers": {"authorization": "mine"}}),
            ({}, "/", {"auth": AUTH}),
            ({}, "http://me:pw@localhost/", {}),
            ({"headers": {"Authorization": "mine"}}, "/", {}),
            ({"auth": AUTH}, "/", {}),
        ],
    )
    async def test_they_win(self, settings, url, options):
        """Of the request, the URL or the session; their 401 is the caller's."""
        tokens = Tokens()
        async with refreshing_session(tokens, answers=[401], **settings) as opened:
            response = await opened.get(url, **options)

        assert 401 == response.status
        assert 0 == tokens.asked

    async def test_those_of_a_session_go_to_its_own_origin_alone(self):
        """Another host that is named gets the token; without a base, none does."""
        own = {"hosts": ["other.example"]}
        for base, expected in ((BASE, "Bearer token-1"), (None, None)):
            transport = ScriptedTransport([200])
            tokens = Tokens()
            added = tokens.decorator(**own)
            async with session(transport, added, base_url=base, auth=AUTH) as opened:
                await opened.get("https://other.example/")
            assert [expected] == sent(transport)

    async def test_other_header_stands_beside_them(self):
        """Both are refused by aiohttp for ``Authorization`` alone."""
        tokens = Tokens()
        transport = ScriptedTransport([200, 200])
        added = tokens.decorator(header="X-Api-Key", scheme=None)
        async with session(transport, added, base_url=BASE, auth=AUTH) as opened:
            await opened.get("/")
            await opened.get("/", headers={"x-api-key": "mine"})

        assert ["token-1", "mine"] == sent(transport, "X-Api-Key")

    async def test_context_made_by_hand_has_no_session(self):
        """A client is tested alone, too."""
        tokens = Tokens()
        client = tokens.decorator(hosts=["localhost"])(ScriptedTransport([200]))

        @client_decorator
        async def alone(delegate, ctx, request):
            return await client.execute(ctx, request)

        async with session([], alone, base_url=BASE) as opened:
            assert 200 == (await opened.get("/")).status


class TestStrangers:
    """Servers that are not the session's own get no token."""

    async def test_other_origin_gets_none(self):
        """Its 401 fetches none."""
        tokens = Tokens()
        transport = ScriptedTransport([401])
        async with refreshing_session(tokens, answers=transport) as opened:
            assert 401 == (await opened.get("http://other.example/")).status

        assert [None] == sent(transport)
        assert 0 == tokens.asked

    async def test_group_gets_tokens(self):
        """One for each of its endpoints; a second request stays at the endpoint."""
        group = EndpointGroup.of("http://a.example", "http://b.example")
        for outside in ((), (retrying(SAFELY),)):
            tokens = Tokens()
            added = outside
            async with refreshing_session(tokens, *added, base_url=group) as opened:
                assert [200] * 4 == await outcomes(opened, 4)
                tokens.expire()
                response = await opened.get("/")
                log = RequestLog.of(response)
            assert 200 == response.status
            if outside:
                first, second = log.children
                assert first.endpoint == second.endpoint
            assert [0, 0] == [each.in_flight for each in group.states.values()]

    async def test_401_of_an_endpoint_that_is_not_named_is_the_caller_s(self):
        """It is a stranger, though of the group."""
        group = EndpointGroup.of("http://a.example")
        own = {"hosts": ["http://b.example"]}
        # Outside of retries the endpoint is chosen after the token was fetched.
        for inside, asked in (((), 0), ((retrying(SAFELY),), 1)):
            tokens = Tokens()
            async with refreshing_session(
                tokens, inside=inside, answers=[401], base_url=group, own=own
            ) as opened:
                assert 401 == (await opened.get("/")).status
            assert asked == tokens.asked


class TestBodies:
    """What cannot be sent twice is not."""

    async def test_body_that_is_spent_gets_its_401(self):
        """The next call fetches a token first."""
        tokens = Tokens()

        async def chunks():
            yield b"tea"

        async with refreshing_session(tokens) as opened:
            await opened.get("/")
            tokens.expire()
            response = await opened.post("/", data=chunks())
            assert 401 == response.status
            assert [200] == await outcomes(opened, 1)
            assert 3 == tokens.asked

    @pytest.mark.parametrize("body", [{"json": {"tea": 1}}, {"data": b"tea"}])
    async def test_body_in_memory_is_sent_again(self, body):
        """A file too."""
        tokens = Tokens()
        async with refreshing_session(tokens) as opened:
            await opened.get("/")
            tokens.expire()
            assert 200 == (await opened.post("/", **body)).status
            tokens.expire()
            assert 200 == (await opened.post("/", data=io.BytesIO(b"tea"))).status


def test_tokens_belong_to_a_loop():
    """One decorator in two loops: each has a token of its own."""
    tokens = Tokens(takes=0.0)
    added = tokens.decorator()

    async def main():
        async with session([tokens.answer] * 2, added, base_url=BASE) as opened:
            return await outcomes(opened, 2)

    assert [[200, 200], [200, 200]] == [asyncio.run(main()) for _ in range(2)]
    assert 2 == tokens.asked


async def test_key_and_token_of_one_call():
    """Each has its header, and both may be bound."""
    tokens = Tokens()
    transport = ScriptedTransport([200])
    async with session(
        transport,
        tokens.decorator(),
        retrying(SAFELY),
        IdempotencyKeyClient.new_decorator(),
        base_url=BASE,
    ) as opened:
        await opened.post("/")

    assert ["Bearer token-1"] == sent(transport)
    assert [None] != sent(transport, "Idempotency-Key")
