"""The resources of a call: what is used once, and responses that are left open."""

from __future__ import annotations

import pytest
from calls import REQUEST, begin, call_of
from fake_responses import FakeResponse, FakeStream

from aioretry_smithy._call.call import CallResources


async def test_something_is_used_once_in_a_call():
    """Equal objects are not the same; each call has resources of its own."""
    first, second = CallResources(), CallResources()
    used, equal = [], []

    assert first.use_once(used)
    assert not first.use_once(used)
    assert first.use_once(equal)
    assert second.use_once(used)


@pytest.mark.parametrize("of_one", [True, False])
async def test_responses_are_closed_of_one_request_or_of_all(of_one):
    """A request is given up alone; a call that fails ends all that it has begun."""
    resources = CallResources()
    call = call_of(begin())
    records = [call.begin_request(REQUEST) for _ in range(2)]
    responses = [FakeResponse(FakeStream()) for _ in records]
    for response, record in zip(responses, records, strict=True):
        resources.track(response, record)
    resources.close_responses(records[0] if of_one else None)

    closed = [each.calls == ["close"] for each in responses]
    assert [True, not of_one] == closed


async def test_response_whose_body_has_ended_is_forgotten():
    """Its connection is in use elsewhere."""
    resources = CallResources()
    ended, under_way = (FakeResponse(FakeStream()) for _ in range(2))
    resources.track(ended)
    ended.connection = None
    resources.track(under_way)
    resources.close_responses()

    assert ([], ["close"]) == (ended.calls, under_way.calls)
