"""Requests that a resuming client does not take up have attempts all the same."""

import aiohttp
import pytest
from chains import response_of, session
from stream_server import StreamServer

from aioretry_smithy import RequestLog, ResumingClient, client_decorator, decorate

RESUMING = ResumingClient.new_decorator()
NEVER = ResumingClient.new_decorator(request_filter=lambda request: False)
KEPT = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Dropping:
    """Answers so many requests of a connection, and closes it on the next one."""

    def __init__(self, answered=0):
        self.answered = answered
        self.asked = 0
        self._server = StreamServer(self._serve)

    async def __aenter__(self):
        await self._server.__aenter__()
        self.url = self._server.url()
        return self

    async def __aexit__(self, *error):
        await self._server.__aexit__(*error)

    async def _serve(self, reader, writer):
        for number in range(self.answered + 1):
            await reader.readuntil(b"\r\n\r\n")
            self.asked += 1
            if number < self.answered:
                writer.write(KEPT)


@pytest.mark.parametrize("decorator", [RESUMING, NEVER])
@pytest.mark.parametrize("method", ["PUT", "GET"])
async def test_with_a_connector_of_others_it_is_sent_again_once(decorator, method):
    """Whose connections may have been used before; each request has a log."""
    connector = aiohttp.TCPConnector()
    borrowing = aiohttp.ClientSession(connector=connector, connector_owner=False)
    async with Dropping() as server, connector, borrowing:
        decorate(borrowing, decorator)
        with pytest.raises(aiohttp.ServerDisconnectedError) as error:
            await borrowing.request(method, server.url)
        log = RequestLog.of(error.value)

        assert 2 == server.asked
    assert 2 == log.total_attempts
    assert ["stale_connection", None] == [each.delay_source for each in log.children]


async def test_a_resend_has_a_log():
    """On a connection of the pool that was broken."""
    own = aiohttp.ClientSession()
    async with Dropping(answered=1) as server, own:
        decorate(own, RESUMING)
        for _ in "ab":
            async with own.put(server.url) as response:
                await response.read()
        log = RequestLog.of(response)

    assert ["stale_connection", None] == [each.delay_source for each in log.children]
    assert (200, 2, None) == (
        log.response_status,
        log.total_attempts,
        log.stop_reason,
    )


async def test_what_is_an_attempt_already_stays_one():
    """That of a decorator outside."""

    @client_decorator
    async def deriving(delegate, ctx, request):
        return await delegate.execute(ctx.derive(request), request)

    response = await response_of(session([200], NEVER, deriving))

    assert 1 == RequestLog.of(response).total_attempts
