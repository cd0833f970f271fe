"""Requests for which there is no endpoint.

Of the cases of endpoints.md (f): 7, 110, 127, 131.
"""

from __future__ import annotations

import copy
import pickle

import aiohttp
import pytest

from aioretry_smithy import (
    EmptyEndpointGroupError,
    EndpointGroupError,
    EndpointSelectionTimeoutError,
    RetrySafety,
    UnprocessedRequestError,
    is_unprocessed,
    retry_safety,
)

KINDS = [EndpointGroupError, EmptyEndpointGroupError, EndpointSelectionTimeoutError]
LISTED = {"a.example": "weight 0", "b.example": "out for 2.000 s: retry_after"}


@pytest.mark.parametrize("kind", KINDS)
def test_text_lists_each_endpoint_and_why(kind):
    """Case 131: with the name of the group."""
    error = kind("orders", "empty", LISTED)

    assert (
        "endpoint group 'orders': empty: a.example (weight 0), "
        "b.example (out for 2.000 s: retry_after)"
    ) == str(error)
    assert ("orders", "empty", LISTED) == (error.group, error.reason, error.endpoints)


def test_text_of_none():
    """Case 131: there is nothing to list."""
    assert "endpoint group 'orders': empty" == str(
        EndpointGroupError("orders", "empty", {})
    )


@pytest.mark.parametrize("kind", KINDS)
def test_any_method_may_be_sent_again(kind):
    """Case 110: nothing was sent."""
    error = kind("orders", "empty", {})

    assert isinstance(error, UnprocessedRequestError)
    assert isinstance(error, aiohttp.ClientError)
    assert is_unprocessed(error)
    assert RetrySafety.YES is retry_safety(error)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "way", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))]
)
def test_can_be_copied(kind, way):
    """Case 127: with all that it says."""
    copied = way(kind("orders", "empty", LISTED))

    assert (kind, "orders", LISTED) == (type(copied), copied.group, copied.endpoints)
    assert str(kind("orders", "empty", LISTED)) == str(copied)
