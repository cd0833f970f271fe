"""Compare the request of the caller with the one that was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._request.request import RoutedRequest

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.kinds import Request
    from .._call.record import Record
    from .._masking.mask import Mask


def asked_of(call: Call, record: Record) -> Request:
    """Return the request of an attempt as it was sent; of a call, that of the caller.

    With a group, the caller's is that to the endpoint which was asked first.
    """
    if record is not call:
        return record.shown_request
    first = call.first.begun_request
    return first if isinstance(first, RoutedRequest) else call.begun_request


def sent_instead(call: Call, record: Record) -> Request | None:
    """Return the request that a call without attempts has sent, if it is another."""
    is_alone = record is call and call.first is call
    return record.sent_request if is_alone else None


def described_change(call: Call, record: Record, mask: Mask) -> str:
    """Name what was sent in place of what was asked for; nothing where that was.

    Another endpoint is no change.
    """
    if record is call:
        return _words(asked_of(call, call), sent_instead(call, call), mask)
    begun = record.begun_request
    asked = begun if isinstance(begun, RoutedRequest) else asked_of(call, call)
    return _words(asked, record.shown_request, mask)


def _words(asked: Request, sent: Request | None, mask: Mask) -> str:
    """Return the method and the URL that were sent, as far as they are others."""
    if sent is None or sent is asked:
        return ""
    # Of a function, the name; it has no URL.
    name = "" if sent.name == asked.name else mask.text(sent.name)
    url = sent.full_url()
    where = "" if url == asked.full_url() else mask.text(str(url))
    return f"{name} {where}".strip()
