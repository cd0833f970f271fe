"""Credentials of a session go to the endpoints of its group, and to nobody else."""

from __future__ import annotations

import warnings
from contextlib import suppress
from types import MappingProxyType

import aiohttp
import pytest
from addressed import HOSTS, RETRIES, ROUND_ROBIN, Servers, text_of, texts_of
from chains import connected
from multidict import CIMultiDict
from yarl import URL

from aioretry_smithy import (
    DynamicEndpointGroup,
    Endpoint,
    EndpointGroup,
    LoadBalancingClient,
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
