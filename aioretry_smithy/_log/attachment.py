"""Find the call that an outcome came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._call.recorder import attached_to
from .._errors import raised_from
from .._failures.frames import sources_of

if TYPE_CHECKING:
    from .._call.call import Call


def find_call(source: object) -> Call | None:
    """Return the call attached to *source*, or to what it was raised from."""
    found = (call_of(link) for link in raised_from(source))
    return next((call for call in found if call is not None), None)


def call_of(source: object) -> Call | None:
    """Return the call of *source* itself, or of the response that raised it."""
    call: Call | None = attached_to(source)
    if call is None and isinstance(source, BaseException):
        return _call_of_body(source)
    return call


def _call_of_body(error: BaseException) -> Call | None:
    """Find the call of the response that raised *error*.

    Most of what a response raises does not pass through this library: errors of its
    status or its JSON. Their frames have the response, or its stream.
    """
    for source, has_failed in sources_of(error):
        call: Call | None = attached_to(source)
        if call is not None:
            if has_failed:
                # Before it was read, so that no wait for it has met the failure.
                source.fail(error)
            return call
    return None
