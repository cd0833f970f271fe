"""How calls and attempts ended."""

from __future__ import annotations

import pytest
from made_lines import failed, sent

from aioretry_smithy._report.fields import (
    cause_type,
    host_of,
    is_refused,
    is_success,
    outcome_of,
    where,
)


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ({"response_status": 503}, "503"),
        ({"response_status": 404, "response_cause": "ClientResponseError: 404"}, "404"),
        ({"response_status": 200}, "200, retried"),
        ({"response_status": 200, "response_cause": "E: cut"}, "200, E"),
        ({"response_cause_type": "TimeoutError"}, "TimeoutError"),
        ({"response_cause": "TimeoutError"}, "TimeoutError"),
        ({"response_cause": "OSError: a: b"}, "OSError"),
        ({}, "no response"),
    ],
)
def test_outcomes(values, outcome):
    """A status, the class of an exception, or both."""
    assert outcome == outcome_of(values)


def test_names_of_classes_are_cut():
    """A line may have any text there."""
    assert 80 == len(cause_type({"response_cause_type": "E" * 10_000}))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"is_success": False, "response_status": 200}, False),
        ({"is_success": True, "response_status": 503}, True),
        ({"response_status": 200}, True),
        ({"response_status": 404}, False),
        ({}, True),
        ({"response_cause": "E: x"}, False),
        ({"response_status": 200, "stop_reason": "limiter"}, False),
    ],
)
def test_successes(values, expected):
    """Lines say so; older ones leave it to be derived."""
    assert expected is is_success(values)


def test_what_was_retried_was_no_success():
    """Whatever the status of an attempt in an older line."""
    assert not is_success({"response_status": 200}, was_retried=True)


def test_refusals_of_this_side():
    """They are exceptions of our decorators, not those of servers."""
    assert is_refused(failed("FailFastError"))
    assert not is_refused(failed("ClientConnectorError"))
    assert not is_refused(sent(status=503))


def test_places():
    """An endpoint before a host, what was sent before what was asked for."""
    url = {"request_url": "http://a/x?token=1"}

    assert "a" == where(url)
    assert "b" == host_of({**url, "sent_url": "http://b/x"})
    assert "eu:80" == where({**url, "endpoint": "eu:80"})
    assert "load" == where({"name": "load"})
    assert "" == where({})
