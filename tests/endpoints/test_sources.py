"""Where a group has its endpoints from.

Of the cases of endpoints.md (f): 1, 114 (that groups are made so).
"""

from __future__ import annotations

import pytest

from aioretry_smithy import EndpointGroup


def test_address_need_not_be_asked_for():
    """A URL with an IP address is one endpoint, known at once."""
    group = EndpointGroup.dns("http://10.0.0.3:8080")

    assert ["10.0.0.3:8080"] == [str(each) for each in group.endpoints]


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
