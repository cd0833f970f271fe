"""One value for all requests, or one for each key."""

from __future__ import annotations

import pytest
from yarl import URL

from aioretry_smithy import HttpRequest
from aioretry_smithy._request.keys import OneForAll, PerKey, host_key

HERE = HttpRequest("GET", URL("http://here.test/a"))
THERE = HttpRequest("POST", URL("http://there.test/b"))
NOWHERE = HttpRequest("GET", URL("/a"))


def per(key):
    return PerKey("key", key, list, list)


def test_one_for_all_is_found_for_every_request():
    """It needs no key, so that a request without a host has it too."""
    value = []
    only = OneForAll("all", value)

    assert [value] * 2 == [only.of(HERE), only.of(NOWHERE)]
    assert {"all": value} == only.in_use()


def test_each_key_has_a_value_of_its_own():
    """Two requests with the same key meet the same value."""
    values = per(host_key)

    assert values.of(HERE) is values.of(HERE)
    assert values.of(HERE) is not values.of(THERE)
    assert ["here.test:80", "there.test:80"] == sorted(values.in_use())


def test_a_request_without_a_key_has_no_value():
    """A relative URL names no host."""
    assert per(host_key).of(NOWHERE) is None


def test_a_value_of_another_class_is_refused():
    """The error names the function that the user passed."""
    values = PerKey("host", host_key, str, str, list)

    with pytest.raises(ValueError, match=r"^factory.*: .*\(expected: a list\)"):
        values.of(HERE)


@pytest.mark.parametrize(
    "url",
    [
        "http://here.test.evil/a",
        "http://here.test:8080/a",
        "http://here.test@there.test/a",
        "https://here.test/a",
    ],
)
def test_a_url_that_begins_like_the_newest_has_another_value(url):
    """The host met last is known by how its URLs begin, up to the slash."""
    values = per(host_key)
    newest = values.of(HttpRequest("GET", "http://here.test/a"))

    assert newest is values.of(HttpRequest("GET", "http://here.test/b"))
    assert newest is not values.of(HttpRequest("GET", url))


def test_keys_of_ones_own_are_asked_for_each_request():
    """Only a key by host is told by how a URL begins."""
    values = per(lambda request: request.target)
    one, other = (HttpRequest("GET", f"http://here.test/{path}") for path in "ab")

    assert values.of(one) is not values.of(other)


def test_url_that_begins_with_a_line_end_before_any_other():
    """It has the value of its server, though no server was met before."""
    assert per(host_key).of(HttpRequest("GET", "\nhttp://first.example/")) is not None
