"""Headers in which a server says how much is left of its rate."""

import time

import pytest
from multidict import CIMultiDict

from aioretry_smithy._limits.rate_rules import seconds_to_reset

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
LEFT, RESET = "X-RateLimit-Remaining", "X-RateLimit-Reset"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"RateLimit": '"default";r=0;t=30'}, 30.0),
        ({"RateLimit": '"default";r=1;t=30'}, None),
        ({"RateLimit": "default ; r=0 ; t=30"}, 30.0),
        ({"RateLimit": '"a";r=0;t=30, "b";r=0;t=60,"c";r=9;t=90'}, 60.0),
        ({"RateLimit": '"a,\\"b";pk=:YQ==:;r=0;t=30'}, 30.0),
        ({"RateLimit": '"a";pk="x;t=99";r=0;t=30'}, 30.0),
        ({"RateLimit": '"a";r=0', "RateLimit-Policy": '"a";q=100;w=60'}, 60.0),
        ({"RateLimit": '"a";r=0', "RateLimit-Policy": '"b";q=100;w=60'}, None),
        ({"RateLimit": '"a";r=0;t=-5'}, 0.0),
        ({"RateLimit": '"a";t=30'}, None),
        ({"RateLimit": '"a;r=0;t=30'}, None),
        ({"RateLimit": '"a";r=zero;t=30'}, None),
        ({"RateLimit": '"a";r=0;t=soon'}, None),
        ({LEFT: "0", RESET: "7"}, 7.0),
        ({LEFT: "-3", RESET: " 7.5 "}, 7.5),
        ({LEFT: "1", RESET: "7"}, None),
        ({LEFT: "0"}, None),
        ({RESET: "7"}, None),
        ({LEFT: "0", RESET: "-7"}, 0.0),
        ({LEFT: "0", RESET: "9" * 30}, None),
        ({LEFT: "0", RESET: "1000000000"}, 1e9),
        ({LEFT: "0", RESET: "1000000001", "Date": DATE}, 1000000001 - 784111777),
        ({LEFT: "0", RESET: "7", "RateLimit": '"a";r=0;t=30'}, 30.0),
        ({LEFT: "0", RESET: "7", "Retry-After": "30"}, 7.0),
    ],
    ids=str,
)
def test_it_says_when_there_is_more(headers, seconds):
    """In seconds; None where something is left, or where it cannot be read."""
    assert seconds == seconds_to_reset(200, CIMultiDict(headers))


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        ("17", 17.0),
        ("6m0s", 360.0),
        ("120ms", 0.12),
        ("1h2m3.5s", 3723.5),
        ("1d", 86400.0),
        ("250us", 0.00025),
        (" 1s ", 1.0),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60.0),
        ("1994-11-06T08:50:37Z", 60.0),
        ("1994-11-06t09:50:37.25+01:00", 60.25),
        ("784111837000", 784111837000 - 784111777),
        ("1994-11-06T08:49:30Z", 0.0),
        ("1994-13-06T08:50:37Z", None),
        ("0001-01-01T00:00:00+23:59", 0.0),
        ("6m0", None),
        ("m", None),
        ("1.s", None),
        ("soon", None),
        ("9" * 30 + "s", None),
        ("", None),
    ],
)
def test_resets_of_requests_and_of_tokens_come_in_many_forms(reset, seconds):
    """Seconds, a Unix time, a duration as Go writes it, or a date."""
    for kind in ("-requests", "-tokens"):
        headers = {f"x-ratelimit-remaining{kind}": "0", "Date": DATE}
        headers[f"x-ratelimit-reset{kind}"] = reset

        expected = None if seconds is None else pytest.approx(seconds)
        assert expected == seconds_to_reset(200, CIMultiDict(headers))


def test_what_has_nothing_left_counts_of_requests_and_tokens():
    """The longest reset, where neither has."""
    headers = CIMultiDict(
        {
            f"{LEFT}-Requests": "0",
            f"{RESET}-Requests": "1s",
            f"{LEFT}-Tokens": "150",
            f"{RESET}-Tokens": "6m0s",
        }
    )

    assert 1.0 == seconds_to_reset(200, headers)

    headers[f"{LEFT}-Tokens"] = "0"

    assert 360.0 == seconds_to_reset(200, headers)


def test_a_policy_may_be_in_each_of_several_headers():
    """They are one list."""
    headers = CIMultiDict([("RateLimit", '"a";r=0;t=3'), ("RateLimit", '"b";r=0;t=4')])

    assert 4.0 == seconds_to_reset(200, headers)


def test_retry_after_comes_first_on_a_429():
    """The server says so of this very request."""
    headers = CIMultiDict({"Retry-After": "3", LEFT: "0", RESET: "7"})

    assert 3.0 == seconds_to_reset(429, headers)
    assert 7.0 == seconds_to_reset(429, CIMultiDict({LEFT: "0", RESET: "7"}))


def test_a_403_counts_like_a_429():
    """Some limits say so, such as GitHub's; a 503 is of the server's health."""
    headers = CIMultiDict({"Retry-After": "30", LEFT: "7", RESET: "9"})

    assert 30.0 == seconds_to_reset(403, headers)
    assert seconds_to_reset(503, headers) is None

    headers = CIMultiDict({LEFT: "0", RESET: "7"})

    assert 7.0 == seconds_to_reset(403, headers)


def test_a_unix_time_without_a_date_counts_from_our_own_clock():
    """It may be over already."""
    soon, long_ago = str(int(time.time()) + 60), "1000000001"

    assert 61.0 >= seconds_to_reset(200, CIMultiDict({LEFT: "0", RESET: soon})) >= 50.0
    assert 0.0 == seconds_to_reset(200, CIMultiDict({LEFT: "0", RESET: long_ago}))
