"""Give aiohttp a body to send, and recorders before it the caller's own.

Recorders and mocks put themselves in the place of ``ClientSession._request``; they
read, compare or pickle what they get there. What they pass on comes to a request of
aiohttp's, and only that takes the wrapped body.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from aiohttp import ClientRequest, ClientSession

from .._bodies.replayable_payload import ReplayablePayload, SpentBodyError
from .._bodies.request_body import is_form_of_files, prepare
from .._failures.failure import judge
from .request_classes import RequestClasses, current_upload

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._call.call import Call


# Whatever else is there was put there by somebody.
_OF_AIOHTTP: Final = ClientSession._request
_BUFFERS = (bytearray, memoryview)
_TAKES: Final = "_aioretry_smithy_takes_shown"


class ShownBody:
    """A body as shown to middlewares and recorders, and the replayable body to send.

    Args:
        shown: The caller's own object, or a copy of it.
        body: What can be sent again; None where it is made when it is sent.
        make: Makes it then.
    """

    __slots__ = ("_body", "_make", "shown")

    def __init__(
        self, shown: object, body: object, make: Callable[[], object] | None = None
    ) -> None:
        self.shown = shown
        self._body = body
        self._make = make

    async def prepare(self) -> None:
        """Rewind the body for recorders, which read from the start."""
        if isinstance(self._body, ReplayablePayload):
            await self._body.release_source()

    def in_place_of(self, given: object) -> object:
        """Return the body to send for the shown body; a different body as is."""
        if given is not self.shown:
            return given
        body = self._body if self._make is None else self._make()
        if isinstance(body, ReplayablePayload):
            body.reclaim_source()
        return body


def body_to_send(call: Call, given: object, data: object, *, shown: bool) -> object:
    """Return the body for aiohttp: the caller's own, what stands for it, or a wrapper.

    Args:
        call: The call.
        given: What the caller gave.
        data: The same, or a copy that nobody can change.
        shown: Whether somebody before aiohttp is to see what the caller gave.
    """
    if shown and is_form_of_files(data):
        # It is used up where a writer is made of it, which is for aiohttp to do.
        return ShownBody(given, None, partial(prepared_body, call, data))
    body = prepared_body(call, data)
    if body is data and not isinstance(given, _BUFFERS):
        # aiohttp writes a buffer after a wait, in which it may change.
        return given
    if not shown:
        return body
    if isinstance(body, ReplayablePayload) and body.source is not data:
        # A factory has made it.
        given = body.source
    return ShownBody(given, body)


def prepared_body(call: Call, data: object) -> object:
    """Return the body to send in one attempt; see :func:`prepare`."""
    if data is None:
        return None
    try:
        return prepare(call, data)
    except SpentBodyError:
        raise
    except Exception as cause:
        judge(cause).raised_by_caller = True
        raise


def is_watched(session: ClientSession, replaced: object) -> bool:
    """Say whether somebody else gets the arguments of requests before aiohttp does."""
    return replaced is not None or type(session)._request is not _OF_AIOHTTP


def take_shown(session: ClientSession) -> bool:
    """Make a session's request class accept shown bodies; False if unsupported."""
    kind = session._request_class
    if not hasattr(kind, _TAKES):
        session._request_class = kind = _taking.of(kind)
    return hasattr(kind, _TAKES)


def _members(kind: type[ClientRequest]) -> dict[str, object]:
    update: Callable[..., None] = kind.update_body_from_data

    def update_body_from_data(
        self: ClientRequest, body: object, *arguments: object, **options: object
    ) -> None:
        upload = current_upload()
        if upload is not None and upload.shown is not None:
            body = upload.shown.in_place_of(body)
        update(self, body, *arguments, **options)

    return {"update_body_from_data": update_body_from_data, _TAKES: True}


_taking: Final = RequestClasses(_members)
