"""What a URL says of a place, with ids folded."""

from __future__ import annotations

import pytest

from aioretry_smithy._report.fields import folded, place_of

FOLDED = {
    "/": "/",
    "": "/",
    "/orders": "/orders",
    "/orders/17": "/orders/*",
    "/orders/17/items/3": "/orders/*/items/*",
    "/orders/17?page=2": "/orders/*",
    "/orders/17#end": "/orders/*",
    "/days/2026-11-23": "/days/*",
    "/days/20261123": "/days/*",
    "/at/2026-11-23T12:00:00Z": "/at/*",
    "/reports/2026-11-23.json": "/reports/*.json",
    "/users/0b9d2c1e-0f0e-4c0e-9a53-0d3c4a1f7a11": "/users/*",
    "/users/0B9D2C1E0F0E4C0E9A530D3C4A1F7A11": "/users/*",
    "/commits/deadbeefcafe1234": "/commits/*",
    "/commits/1f2e3d4c": "/commits/*",
    "/keys/01ARZ3NDEKTSV4RRFFQ69G5FAV": "/keys/*",
    "/v2/orders": "/v2/orders",
    "/facade": "/facade",
    "/decade/effaced": "/decade/effaced",
    "/files/report.json": "/files/report.json",
    "/a-word-with-dashes-that-is-quite-long": "/a-word-with-dashes-that-is-quite-long",
}


@pytest.mark.parametrize("path", FOLDED)
def test_ids_are_folded_and_words_are_not(path):
    """What differs from call to call is a star."""
    assert FOLDED[path] == folded(path)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://api.example.com/a", "api.example.com"),
        ("https://api.example.com:443/a", "api.example.com"),
        ("http://api.example.com:80", "api.example.com"),
        ("http://api.example.com:443/a", "api.example.com:443"),
        ("http://API.example.com:8080/a", "api.example.com:8080"),
        ("https://****@api.example.com/a", "api.example.com"),
        ("http://[::1]:80/a", "[::1]"),
        ("strange://host:1", "host:1"),
        ("/orders/17", ""),
    ],
)
def test_hosts(url, host):
    """The port of the scheme is not shown, and neither are credentials."""
    assert host == place_of(url).host


def test_path_of_a_url_without_a_host():
    """A relative URL has a path all the same."""
    assert "/orders/*" == place_of("/orders/17").path


def test_hostile_paths_are_cut():
    """Nothing in memory is as long as somebody likes."""
    assert 200 >= len(place_of("http://h/" + "x" * 10_000).path)
    assert 200 >= len(place_of("http://" + "x" * 10_000).host)
