"""Headers in which a server says how much is left of its rate."""

from __future__ import annotations

import time

import pytest
from multidict import CIMultiDict

from aioretry_smithy._limits.rate_headers import seconds_to_reset

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


def test_a_policy_may_be_in_each_of_several_headers():
    """They are one list."""
    headers = CIMultiDict([("RateLimit", '"a";r=0;t=3'), ("RateLimit", '"b";r=0;t=4')])

    assert 4.0 == seconds_to_reset(200, headers)


def test_retry_after_comes_first_on_a_429():
    """The server says so of this very request."""
    headers = CIMultiDict({"Retry-After": "3", LEFT: "0", RESET: "7"})

    assert 3.0 == seconds_to_reset(429, headers)
    assert 7.0 == seconds_to_reset(429, CIMultiDict({LEFT: "0", RESET: "7"}))


def test_a_unix_time_without_a_date_counts_from_our_own_clock():
    """It may be over already."""
    soon, long_ago = str(int(time.time()) + 60), "1000000001"

    assert 61.0 >= seconds_to_reset(200, CIMultiDict({LEFT: "0", RESET: soon})) >= 50.0
    assert 0.0 == seconds_to_reset(200, CIMultiDict({LEFT: "0", RESET: long_ago}))
