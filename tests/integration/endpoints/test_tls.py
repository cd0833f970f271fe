"""TLS to an address goes by the name of the service.

In brackets: the case of ``research/endpoints.md``.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl

import aiohttp
import pytest
import trustme
from addressed import HOSTS, IN_ORDER, NAME, RETRIES, Servers, issue, served, text_of
from chains import connected, retrying

from aioretry_smithy import (
    Endpoint,
    EndpointGroup,
    OutlierDetection,
    RequestLog,
    RetryStrategy,
)


@pytest.fixture(scope="module")
def contexts():
    """Contexts of TLS: of a server with the name of the service, and of a client."""
    return issue(NAME, "shop.test")


@pytest.fixture
async def servers(contexts):
    """Servers at two addresses."""
    async with Servers(*HOSTS[:2], tls=contexts[0]) as opened:
        yield opened


async def test_server_sees_the_name_of_the_service(servers, contexts):
    """And its certificate is the right one, though the connection has an address."""
    # Cases 23 and 24.
    async with servers.session() as client:
        await text_of(client, ssl=contexts[1])

    assert [("127.0.0.1", NAME, f"{NAME}:{servers.port}")] == [
        (each.at, each.name, each.host) for each in servers.seen
    ]


async def test_connector_of_the_callers_own_brings_its_context(servers, contexts):
    """It is the session's, as without a group (28)."""
    connector = aiohttp.TCPConnector(ssl=contexts[1])
    async with servers.session(connector=connector) as client:
        await text_of(client)

    assert [NAME] == [each.name for each in servers.seen]


async def test_name_for_tls_of_the_callers_own_wins(servers, contexts):
    """The Host header stays that of the service (26)."""
    async with servers.session() as client:
        await text_of(client, ssl=contexts[1], server_hostname="shop.test")

    assert [("shop.test", f"{NAME}:{servers.port}")] == [
        (each.name, each.host) for each in servers.seen
    ]


async def test_fingerprint_is_checked(servers, contexts):
    """The right one passes, a wrong one does not (28)."""
    _, writer = await asyncio.open_connection(
        "127.0.0.1", servers.port, ssl=contexts[1], server_hostname=NAME
    )
    secured = writer.get_extra_info("ssl_object")
    digest = hashlib.sha256(secured.getpeercert(binary_form=True)).digest()
    writer.close()
    group = servers.group(outlier_detection=None)
    async with connected(group) as client:
        text = await text_of(client, ssl=aiohttp.Fingerprint(digest))
        with pytest.raises(aiohttp.ServerFingerprintMismatch):
            await text_of(client, ssl=aiohttp.Fingerprint(bytes(32)))

    assert "127.0.0.1" == text


async def test_websocket_has_the_name_too(servers, contexts):
    """``wss`` is ``https``."""
    async with servers.session() as client:
        url = servers.url(scheme="wss") / "ws"
        async with client.ws_connect(url, ssl=contexts[1]) as connection:
            said = await connection.receive_str()

    assert ("127.0.0.1", NAME) == (said, servers.seen[0].name)


@pytest.mark.parametrize(
    "strategy", [RetryStrategy.failsafe(), RetryStrategy.on_unprocessed()]
)
async def test_wrong_certificate_puts_an_endpoint_out_and_the_next_is_tried(strategy):
    """It says nothing of the others, and nothing was sent: a POST goes there too."""
    # Case 25.
    authority = trustme.CA()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with Servers("127.0.0.1", tls=served(authority, "other.test")) as wrong:
        right = Servers("127.0.0.2", tls=served(authority, NAME))
        right.port = wrong.port
        async with right:
            group = EndpointGroup.of(
                *(Endpoint(right.url(), address=host) for host in HOSTS[:2]),
                selection=IN_ORDER,
            )
            async with (
                connected(group, retrying(strategy)) as client,
                client.post("/orders", ssl=trusting) as response,
            ):
                log = RequestLog.of(response)
                states = [*group.states.values()]

    assert 200 == response.status
    assert ["127.0.0.2"] == [each.at for each in right.seen]
    assert [] == wrong.seen
    assert ["next_endpoint", None] == [each.delay_source for each in log.children]
    assert ["connect_failures", None] == [each.reason for each in states]


async def test_wrong_certificate_of_the_only_endpoint_is_final(contexts):
    """There is no other to be tried, and this one would be as wrong again."""
    async with (
        Servers("127.0.0.1", tls=contexts[0]) as servers,
        connected(servers.group("other.test"), RETRIES) as client,
    ):
        with pytest.raises(aiohttp.ClientConnectorCertificateError) as caught:
            await client.get("/orders", ssl=contexts[1])

    assert 1 == RequestLog.of(caught.value).total_attempts


@pytest.mark.parametrize("own", [None, "shop.test"])
async def test_two_services_at_one_address_share_no_connection(own, servers, contexts):
    """One that was verified for a name is not used for another one."""
    # Case 27: aiohttp itself keeps them apart since 3.14.1.
    connector = aiohttp.TCPConnector(ssl=contexts[1])
    other = EndpointGroup.of(
        Endpoint(servers.url("shop.test"), address="127.0.0.1"), outlier_detection=None
    )
    async with (
        servers.session(connector=connector, connector_owner=False) as one,
        connected(other, connector=connector, connector_owner=False) as two,
    ):
        await text_of(one)
        await text_of(two, server_hostname=own)
        await text_of(one)
        await text_of(two, server_hostname=own)
    await connector.close()

    names = [NAME, "shop.test"] * 2
    assert names == [each.name for each in servers.seen]
    assert 2 == len({each.connection for each in servers.seen})


async def test_name_that_no_certificate_has_gets_no_connection_of_another(
    servers, contexts
):
    """There is one in the pool for the same address, which must not serve it."""
    # Case 27.
    connector = aiohttp.TCPConnector(ssl=contexts[1])
    other = EndpointGroup.of(Endpoint(servers.url("bad.test"), address="127.0.0.1"))
    async with (
        servers.session(connector=connector, connector_owner=False) as one,
        connected(other, connector=connector, connector_owner=False) as two,
    ):
        await text_of(one)
        for options in ({}, {"server_hostname": "worse.test"}):
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await text_of(two, **options)
        await text_of(one)
    await connector.close()

    assert 2 == len(servers.seen)
    assert 1 == len({each.connection for each in servers.seen})


async def test_certificate_error_of_a_stranger_puts_nobody_out(servers, contexts):
    """A redirect led there; the endpoint has answered."""
    detection = OutlierDetection(connect_failures=1)
    group = servers.group(outlier_detection=detection)
    async with connected(group, RETRIES) as client:
        url = f"/see?to={servers.url('127.0.0.2')}"
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await client.get(url, ssl=contexts[1])

    assert [None, None] == [each.reason for each in group.states.values()]
    assert ["1"] == servers.asked
