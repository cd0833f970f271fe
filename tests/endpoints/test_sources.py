"""Where a group has its endpoints from.

Of the cases of endpoints.md (f): 1, 114 (that groups are made so).
"""

from __future__ import annotations

import asyncio

import pytest
from balanced import Fleet, call
from yarl import URL

from aioretry_smithy import Endpoint, EndpointGroup
from aioretry_smithy._endpoints.discovery import Listed


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://A.example", "http://a.example"),
        ("http://a.example:8080/v1", "http://a.example:8080/v1/"),
    ],
)
def test_name_is_the_origin_and_the_prefix(url, name):
    """And all that its description begins with."""
    group = EndpointGroup.dns(url)

    assert name == group.name
    assert repr(group).startswith(f"EndpointGroup.dns({name!r}, selection=")
    assert () == group.endpoints


def test_services_of_records_have_their_name():
    """Their URLs begin with those of the endpoints, once there are any."""
    pytest.importorskip("dns", reason="needs the extra dns")
    group = EndpointGroup.srv("_http._tcp.orders.example.com")

    assert "_http._tcp.orders.example.com" == group.name
    assert "https://endpoints.invalid/" == str(group.placeholder)
    assert repr(group).startswith("EndpointGroup.srv('_http._tcp.orders.example.com', ")


async def test_absolute_url_of_the_name_is_balanced():
    """Case 19: its addresses have one origin."""
    fleet = Fleet()
    async with fleet.session(EndpointGroup.dns("http://10.0.0.3")) as client:
        _, ours = await call(client, "http://10.0.0.3/x")
        _, other = await call(client, "http://10.0.0.4/x")

    assert ["10.0.0.3:80", None] == [ours.endpoint, other.endpoint]


async def test_url_of_a_service_of_records_begins_with_the_first_endpoint():
    """As soon as there is a list."""
    pytest.importorskip("dns", reason="needs the extra dns")
    group = EndpointGroup.srv("_http._tcp.orders.example.com")
    roster = group._roster_in(asyncio.get_running_loop())
    before = group._service.join(URL("/orders"))
    roster.set_listed([Listed(Endpoint("http://a.example:81"))])

    assert ["/orders", "http://a.example:81/orders"] == [
        str(before),
        str(group._service.join(URL("/orders"))),
    ]
