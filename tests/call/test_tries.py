"""Which endpoints a call has tried, and where its answer came from.

Of the cases of endpoints.md (f): 59 to 61, 129.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from aioretry_smithy import Endpoint
from aioretry_smithy._call.record import Route
from aioretry_smithy._call.tries import has_untried, last_of, route_of, tries_of

A, B = Endpoint("http://a.example"), Endpoint("http://b.example")


class To(Route):
    """A route to an endpoint of two."""

    def __init__(self, endpoint):
        self.endpoint = endpoint

    def has_other(self, tried):
        return any(each not in tried for each in (A, B))


def ended():
    """Make what is known of an outcome."""
    return SimpleNamespace(part=None)


def sent(endpoint=None, outcome=None):
    """Make what is known of a request."""
    route = None if endpoint is None else To(endpoint)
    return SimpleNamespace(route=route, outcome=outcome or ended(), number=0)


def call_of(*requests, outcome=None, endpoint=None, tries_before=0):
    """Make what is known of a call with these requests."""
    for number, request in enumerate(requests, 1):
        request.number = number
    return SimpleNamespace(
        sent=[*requests],
        outcome=outcome or ended(),
        route=sent(endpoint).route,
        tries_before=tries_before,
    )


def test_tries_are_counted():
    """Those that went elsewhere do not count, nor the one under way."""
    now = sent(B)
    call = call_of(sent(A), sent(B), sent(A), sent(), now)

    assert {A: 2, B: 2} == tries_of(call)
    assert {A: 2, B: 1} == tries_of(call, now)
    assert {} == tries_of(call_of())


@pytest.mark.parametrize(
    ("tried", "expected"), [([A], True), ([B, A], False), ([A, A], True)]
)
def test_untried_is_looked_for_in_all_that_was_sent(tried, expected):
    """The request itself is one of these."""
    requests = [sent(each) for each in tried]

    assert expected == has_untried(call_of(*requests), requests[-1])


def test_without_a_choice_there_is_no_other():
    """A request to another origin has none."""
    assert not has_untried(call_of(sent(A)), sent())


def test_route_of_a_request_is_its_own():
    """Whatever the call ended with."""
    request = sent(A)

    assert request.route is route_of(call_of(request), request)


def test_route_of_a_call_is_that_of_its_answer():
    """The last one with its outcome; a hedge may have won."""
    first, second, third = sent(A), sent(B), sent(A)
    call = call_of(first, second, third, outcome=second.outcome)

    assert second.route is route_of(call, call)


def test_route_of_a_download_is_that_of_its_last_part():
    """The call has an outcome of its own then."""
    whole, first, second = ended(), sent(A), sent(B)
    whole.part = second.outcome
    call = call_of(first, second, outcome=whole)

    assert second.route is route_of(call, call)
    assert second is last_of(call, call)


def test_tries_are_those_of_one_part_of_a_body():
    """To the next one all endpoints are new."""
    call = call_of(sent(A), sent(B), sent(A), tries_before=2)

    assert {A: 1} == tries_of(call)


def test_route_of_a_call_under_way_is_not_known():
    """Nor of one that something on this side has answered."""
    call = call_of(sent(A))

    assert route_of(call, call) is None


def test_route_of_a_call_without_attempts_is_its_own():
    """It is the request, too."""
    call = call_of(endpoint=A)

    assert call.route is route_of(call, call)
