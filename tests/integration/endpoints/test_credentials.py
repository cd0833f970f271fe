"""Credentials and certificates go by the names of endpoints.

In brackets: the case of ``research/endpoints.md``.
"""

import asyncio
import hashlib
import ssl
import warnings
from contextlib import suppress
from types import MappingProxyType

import aiohttp
import pytest
import trustme
from addressed import (
    HOSTS,
    IN_ORDER,
    NAME,
    RETRIES,
    ROUND_ROBIN,
    Servers,
    issue,
    served,
    text_of,
    texts_of,
)
from chains import connected, retrying
from multidict import CIMultiDict
from yarl import URL

from aioretry_smithy import (
    DynamicEndpointGroup,
    Endpoint,
    EndpointGroup,
    LoadBalancingClient,
    OutlierDetection,
    RequestLog,
    RetryStrategy,
    decorate,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*[aA]uth.*:DeprecationWarning")

with warnings.catch_warnings():
    # Deprecated since 3.14, and still what sessions take.
    warnings.simplefilter("ignore")
    AUTH = aiohttp.BasicAuth("ann", "secret")
    OWN = aiohttp.BasicAuth("bob", "other")


def of_urls(servers, **settings):
    """Make a group of servers with URLs of their own."""
    return EndpointGroup.of(
        *map(servers.url, servers.hosts), selection=ROUND_ROBIN, **settings
    )


def of_addresses(servers):
    """Make a group of addresses behind a name."""
    return servers.group(selection=ROUND_ROBIN)


def dynamic(servers):
    """Make a group of servers that may be others tomorrow."""
    group = DynamicEndpointGroup(selection=ROUND_ROBIN)
    group.set_endpoints([*map(servers.url, servers.hosts)])
    return group


MAKERS = {"own URLs": of_urls, "addresses": of_addresses, "dynamic": dynamic}
each = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def sent(servers):
    return {(seen.at, seen.authorization) for seen in servers.seen}


@each
@pytest.mark.parametrize("trust_env", [False, True])
async def test_all_endpoints_get_them(make, trust_env, servers):
    """Aiohttp itself sends them to the origin of the base URL alone."""
    group = make(servers)
    async with connected(group, RETRIES, auth=AUTH, trust_env=trust_env) as client:
        await texts_of(client, 2)

    assert {(host, AUTH.encode()) for host in servers.hosts} == sent(servers)


@each
@pytest.mark.parametrize("trust_env", [False, True])
async def test_stranger_gets_none(make, trust_env, servers, stranger):
    """Neither by an absolute URL nor by a redirect, from whichever endpoint."""
    url, group = stranger.url("127.0.0.1"), make(servers)
    async with connected(group, RETRIES, auth=AUTH, trust_env=trust_env) as client:
        await text_of(client, url)
        for _ in range(2):
            await text_of(client, URL("/see").update_query(to=str(url)))

    assert [None] * 3 == [seen.authorization for seen in stranger.seen]
    assert {AUTH.encode()} == {seen.authorization for seen in servers.seen}


@each
@pytest.mark.parametrize("status", [302, 307])
async def test_relative_redirect_keeps_them(make, status, servers):
    """It is the same endpoint."""
    async with connected(make(servers), RETRIES, auth=AUTH) as client:
        for _ in range(2):
            await text_of(client, URL("/see").update_query(to="/x", status=status))

    assert {(host, AUTH.encode()) for host in servers.hosts} == sent(servers)


OWNS = {
    "auth": ({"auth": OWN}, OWN.encode()),
    "header": ({"headers": {"authorization": "Bearer 7"}}, "Bearer 7"),
}


@pytest.mark.parametrize(("options", "expected"), OWNS.values(), ids=OWNS)
async def test_callers_own_win(options, expected, servers):
    """Those of a request, as far as aiohttp lets them stand beside the session's."""
    urls = [servers.url("127.0.0.2"), servers.url("127.0.0.1")]
    group = EndpointGroup.of(*urls, selection=ROUND_ROBIN)
    async with connected(group, auth=AUTH) as client:
        for _ in range(2):
            # aiohttp refuses a header beside its own, for its base URL.
            with suppress(ValueError):
                await text_of(client, **options)

    assert expected == dict(sent(servers))["127.0.0.1"]


@pytest.mark.parametrize("name", ["Authorization", "authorization"])
@pytest.mark.parametrize("kind", [CIMultiDict, dict, MappingProxyType])
async def test_header_of_the_session_wins(kind, name, servers):
    """It has gone to all servers anyway; aiohttp refuses both for its base URL."""
    urls = [servers.url("127.0.0.2"), servers.url("127.0.0.1")]
    group = EndpointGroup.of(*urls, selection=ROUND_ROBIN)
    async with connected(group, auth=AUTH) as client:
        vars(client)["_default_headers"] = kind({name: "Bearer 7"})
        for _ in range(2):
            with suppress(ValueError):
                await text_of(client)

    assert {("127.0.0.1", "Bearer 7")} == sent(servers)


async def test_credentials_within_an_absolute_url_win(servers):
    """As they do without a group."""
    async with connected(of_addresses(servers), RETRIES) as client:
        url = (servers.url() / "x").with_user("bob").with_password("other")
        await text_of(client, url)

    assert [OWN.encode()] == [seen.authorization for seen in servers.seen]


async def test_credentials_within_a_url_win_over_those_of_the_session(servers):
    """Also for the scheme of websockets, which is another origin to aiohttp."""
    async with connected(of_addresses(servers), RETRIES, auth=AUTH) as client:
        for user in ("bob", None):
            url = servers.url(scheme="ws") / "ws"
            if user:
                url = url.with_user(user).with_password("other")
            async with client.ws_connect(url) as connection:
                await connection.receive_str()

    assert [OWN.encode(), AUTH.encode()] == [
        each.authorization for each in servers.seen
    ]


@pytest.mark.parametrize("has_address", [False, True])
async def test_endpoint_that_has_left_is_a_stranger(has_address):
    """It gets no credentials any more, though the first list had it."""
    async with Servers(*HOSTS[:2]) as servers:
        group = DynamicEndpointGroup(selection=ROUND_ROBIN)
        first, second = map(servers.url, servers.hosts)
        address = "127.0.0.1" if has_address else None
        group.set_endpoints([Endpoint(first, address=address), second])
        async with connected(group, RETRIES, auth=AUTH) as client:
            group.set_endpoints([second])
            await text_of(client, first / "x")
            await text_of(client)

    assert {("127.0.0.1", None), ("127.0.0.2", AUTH.encode())} == sent(servers)


async def test_file_of_credentials_does_not_stand_in_their_way(
    servers, monkeypatch, tmp_path
):
    """The session's win over those of a netrc file, for every endpoint."""
    file = tmp_path / "netrc"
    file.write_text("default login bob password other\n")
    monkeypatch.setenv("NETRC", str(file))
    group = of_urls(servers)
    async with connected(group, RETRIES, auth=AUTH, trust_env=True) as client:
        await texts_of(client, 2)
        for _ in range(2):
            await text_of(client, URL("/see").update_query(to="/x"))

    assert {(host, AUTH.encode()) for host in servers.hosts} == sent(servers)


async def test_session_without_a_base_url_sends_them_to_all(servers):
    """So says aiohttp, which adds them itself; nothing is added twice."""
    client = aiohttp.ClientSession(auth=AUTH)
    decorate(client, LoadBalancingClient.new_decorator(of_urls(servers)))
    async with client:
        await texts_of(client, 2)

    assert {(host, AUTH.encode()) for host in servers.hosts} == sent(servers)


@pytest.mark.parametrize("retries", [False, True])
async def test_next_attempt_has_them_too(retries, servers):
    """It goes to the next endpoint, with what that is to get."""
    servers.statuses["127.0.0.1"] = 503
    decorators = [RETRIES] if retries else []
    async with connected(of_urls(servers), *decorators, auth=AUTH) as client:
        await texts_of(client, 4)

    assert {AUTH.encode()} == {seen.authorization for seen in servers.seen}


@pytest.fixture(scope="module")
def contexts():
    """Contexts of TLS: of a server with the name of the service, and of a client."""
    return issue(NAME, "shop.test")


@pytest.fixture
async def secure(contexts):
    """Servers at two addresses."""
    async with Servers(*HOSTS[:2], tls=contexts[0]) as opened:
        yield opened


async def test_server_sees_the_name_of_the_service(secure, contexts):
    """And its certificate is the right one, though the connection has an address."""
    # Cases 23 and 24.
    async with secure.session() as client:
        await text_of(client, ssl=contexts[1])

    assert [("127.0.0.1", NAME, f"{NAME}:{secure.port}")] == [
        (each.at, each.name, each.host) for each in secure.seen
    ]


async def test_connector_of_the_callers_own_brings_its_context(secure, contexts):
    """It is the session's, as without a group (28)."""
    connector = aiohttp.TCPConnector(ssl=contexts[1])
    async with secure.session(connector=connector) as client:
        await text_of(client)

    assert [NAME] == [each.name for each in secure.seen]


async def test_name_for_tls_of_the_callers_own_wins(secure, contexts):
    """The Host header stays that of the service (26)."""
    async with secure.session() as client:
        await text_of(client, ssl=contexts[1], server_hostname="shop.test")

    assert [("shop.test", f"{NAME}:{secure.port}")] == [
        (each.name, each.host) for each in secure.seen
    ]


async def test_fingerprint_is_checked(secure, contexts):
    """The right one passes, a wrong one does not (28)."""
    _, writer = await asyncio.open_connection(
        "127.0.0.1", secure.port, ssl=contexts[1], server_hostname=NAME
    )
    secured = writer.get_extra_info("ssl_object")
    digest = hashlib.sha256(secured.getpeercert(binary_form=True)).digest()
    writer.close()
    group = secure.group(outlier_detection=None)
    async with connected(group) as client:
        text = await text_of(client, ssl=aiohttp.Fingerprint(digest))
        with pytest.raises(aiohttp.ServerFingerprintMismatch):
            await text_of(client, ssl=aiohttp.Fingerprint(bytes(32)))

    assert "127.0.0.1" == text


async def test_websocket_has_the_name_too(secure, contexts):
    """``wss`` is ``https``."""
    async with secure.session() as client:
        url = secure.url(scheme="wss") / "ws"
        async with client.ws_connect(url, ssl=contexts[1]) as connection:
            said = await connection.receive_str()

    assert ("127.0.0.1", NAME) == (said, secure.seen[0].name)


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
        Servers("127.0.0.1", tls=contexts[0]) as secure,
        connected(secure.group("other.test"), RETRIES) as client,
    ):
        with pytest.raises(aiohttp.ClientConnectorCertificateError) as caught:
            await client.get("/orders", ssl=contexts[1])

    assert 1 == RequestLog.of(caught.value).total_attempts


@pytest.mark.parametrize("own", [None, "shop.test"])
async def test_two_services_at_one_address_share_no_connection(own, secure, contexts):
    """One that was verified for a name is not used for another one."""
    # Case 27: aiohttp itself keeps them apart since 3.14.1.
    connector = aiohttp.TCPConnector(ssl=contexts[1])
    other = EndpointGroup.of(
        Endpoint(secure.url("shop.test"), address="127.0.0.1"), outlier_detection=None
    )
    async with (
        secure.session(connector=connector, connector_owner=False) as one,
        connected(other, connector=connector, connector_owner=False) as two,
    ):
        await text_of(one)
        await text_of(two, server_hostname=own)
        await text_of(one)
        await text_of(two, server_hostname=own)
    await connector.close()

    names = [NAME, "shop.test"] * 2
    assert names == [each.name for each in secure.seen]
    assert 2 == len({each.connection for each in secure.seen})


async def test_name_that_no_certificate_has_gets_no_connection_of_another(
    secure, contexts
):
    """There is one in the pool for the same address, which must not serve it."""
    # Case 27.
    connector = aiohttp.TCPConnector(ssl=contexts[1])
    other = EndpointGroup.of(Endpoint(secure.url("bad.test"), address="127.0.0.1"))
    async with (
        secure.session(connector=connector, connector_owner=False) as one,
        connected(other, connector=connector, connector_owner=False) as two,
    ):
        await text_of(one)
        for options in ({}, {"server_hostname": "worse.test"}):
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await text_of(two, **options)
        await text_of(one)
    await connector.close()

    assert 2 == len(secure.seen)
    assert 1 == len({each.connection for each in secure.seen})


async def test_certificate_error_of_a_stranger_puts_nobody_out(secure, contexts):
    """A redirect led there; the endpoint has answered."""
    detection = OutlierDetection(connect_failures=1)
    group = secure.group(outlier_detection=detection)
    async with connected(group, RETRIES) as client:
        url = f"/see?to={secure.url('127.0.0.2')}"
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await client.get(url, ssl=contexts[1])

    assert [None, None] == [each.reason for each in group.states.values()]
    assert ["1"] == secure.asked
