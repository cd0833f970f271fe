"""Find the endpoints that a further request of a call goes to first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._call.tries import rests_of, tries_of
from .._clock import NEAR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._call.call import Call
    from .._call.record import Record
    from .state import EndpointState


def least_tried(
    call: Call, record: Record, well: Sequence[EndpointState]
) -> Sequence[EndpointState]:
    """Return those that a call has not tried, or tried less often than others.

    Not those that it knows to want to be left alone, as long as there are others. For a
    further part of a body that which has served the one before, if it is well.
    """
    tries = tries_of(call, record)
    if not tries:
        there = [each for each in well if each.endpoint == call.stays_at]
        return [each for each in there if not each.is_out] or well
    now, rests = call.loop.time() + NEAR, rests_of(call)
    well = [each for each in well if rests.get(each.endpoint, now) <= now] or well
    fewest = min(tries.get(each.endpoint, 0) for each in well)
    return [each for each in well if tries.get(each.endpoint, 0) == fewest]
