"""Derive request classes that count the bytes of bodies and mark connections.

aiohttp does not say which one a request got. So each request marks its connection as
used, and keeps in mind whether that was marked before.
"""

from __future__ import annotations

import asyncio
import weakref
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp import ClientRequest, ClientResponse, ClientSession, payload
from aiohttp.client_proto import ResponseHandler

from .._call.record import Record, SerializedJson, Upload
from .._endpoints.visit import note_hop
from .._failures.frames import REQUEST, SENDING, Trace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from yarl import URL

    from .._request.arguments import Arguments
    from .transport import ShownBody

    Kind: TypeAlias = type[ClientRequest]


class RequestClasses:
    """Derives request classes from given classes, and keeps one of each.

    None of them lives on for having been used once.

    Args:
        members: Returns what one has that the class given has not.
    """

    def __init__(self, members: Callable[[Kind], dict[str, object]]) -> None:
        self._members = members
        self._known: WeakKeyDictionary[Kind, weakref.ref[Kind]] = WeakKeyDictionary()

    def of(self, kind: Kind) -> Kind:
        """Return the request class derived from *kind*; a mock or function as is."""
        if not isinstance(kind, type):
            # A mock, or a function.
            return kind
        known = self._known.get(kind)
        made = None if known is None else known()
        if made is None:
            members = {"__module__": kind.__module__, **self._members(kind)}
            made = type(kind.__name__, (kind,), members)
            self._known[kind] = weakref.ref(made)
        return made


_USED: Final = "_aioretry_smithy_used"
_REUSED: Final = "_aioretry_smithy_reused"
_CONNECTOR: Final = "aiohttp.connector"

# Before 3.14 the last of them is not among those that aiohttp itself sends again.
_BROKEN: Final = (
    aiohttp.ClientOSError,
    aiohttp.ServerDisconnectedError,
    aiohttp.ClientConnectionResetError,
)


class BrokenConnection(NamedTuple):
    """A connection of aiohttp's that broke before the headers of an answer."""

    was_reused: bool | None
    """Whether the broken connection was reused; None if unknown."""

    hops: Sequence[ClientResponse]
    """The redirects that were answered before."""

    session: ClientSession
    """The session that sent the request."""


def marks_connection(
    send: Callable[..., Awaitable[ClientResponse]],
) -> Callable[..., Awaitable[ClientResponse]]:
    """Make the method of a request that marks the connection it is sent on."""

    # Not a coroutine of its own: every request comes here.
    def marked(self: Any, conn: Any) -> Awaitable[ClientResponse]:
        facts = conn.protocol.__dict__
        # A session that marks nothing may share the pool; its last answer is left here.
        was_used = _USED in facts or facts.get("_payload") is not None
        self.__dict__[_REUSED] = was_used
        facts[_USED] = True
        return send(self, conn)

    return marked


def mark_pool(connector: object) -> None:
    """Mark the connections that a session has used before its chain was put in."""
    if not isinstance(connector, aiohttp.BaseConnector):
        # The session is closed, or has a mock.
        return
    pooled = [each[0] for pool in connector._conns.values() for each in pool]
    # Among the acquired ones are places for connections that are being made.
    for protocol in [*pooled, *connector._acquired]:
        if isinstance(protocol, ResponseHandler):
            vars(protocol)[_USED] = True


def broken_connection(cause: BaseException) -> BrokenConnection | None:
    """Return the facts about a broken connection; None for any other failure.

    A mock's exception, one of a middleware and a refused connection are others.
    """
    if not isinstance(cause, _BROKEN) or isinstance(
        cause, aiohttp.ClientConnectorError
    ):
        return None
    frames = Trace(cause).frames
    places = [place for place, _ in frames]
    if REQUEST not in places or SENDING not in places:
        return None
    variables = frames[places.index(REQUEST)][1].f_locals
    hops = variables.get("history")
    if not isinstance(hops, list):
        # Renamed some day: then nobody knows what was answered.
        return None
    session = variables["self"]
    sent = len(places) - 1 - places[::-1].index(SENDING)
    if any(module == _CONNECTOR for module, _ in places[sent:]):
        # By a proxy, before the request had a connection.
        return BrokenConnection(False, tuple(hops), session)
    request = frames[sent][1].f_locals.get("req")
    was_reused = getattr(request, _REUSED, None)
    is_of_middleware = REQUEST in places[places.index(REQUEST) + 1 : sent]
    if is_of_middleware or (was_reused is False and not session.connector_owner):
        # It says nothing about the connection of the request itself; or others use the
        # connector, too, and mark nothing.
        was_reused = None
    return BrokenConnection(was_reused, tuple(hops), session)


# Bodies that aiohttp hands to the transport without a wait, if they are not long.
_WHOLE = frozenset(
    {payload.BytesPayload, payload.JsonPayload, payload.StringPayload}
    | {getattr(payload, "JsonBytesPayload", payload.JsonPayload)}  # since 3.14
)
# Half of what aiohttp writes before it waits for the transport.
_ONE_PIECE = 2**15


_last_upload: ContextVar[Upload | None] = ContextVar(
    "aioretry_smithy_upload", default=None
)


def measure_uploads(session: ClientSession) -> type[ClientRequest]:
    """Make the requests of a session count their bytes; return the class before."""
    before: type[ClientRequest] = session._request_class
    session._request_class = measured.of(before)
    return before


def has_body_in(arguments: Arguments) -> bool:
    """Say whether a request with these arguments has a body."""
    if "data" in arguments and arguments["data"] is not None:
        return True
    return "json" in arguments and arguments["json"] is not None


async def sending(
    record: Record,
    json: list[SerializedJson] | None,
    send: Callable[[], Awaitable[aiohttp.ClientResponse]],
    shown: ShownBody | None = None,
) -> aiohttp.ClientResponse:
    """Send a request, and count its body for the *record*.

    The JSON that is serialized for it is added to *json*. Others see what is *shown*.
    """
    record.upload = upload = open_upload()
    upload.json = json
    upload.shown = shown
    try:
        if shown is not None:
            await shown.prepare()
        return await send()
    finally:
        close_upload(upload)


def current_upload() -> Upload | None:
    """Return the open upload of this task's request, if any."""
    upload = _last_upload.get()
    return upload if upload is not None and upload.is_open else None


def open_upload() -> Upload:
    """Make an upload, and let the next body that this task sends be counted there."""
    upload = Upload()
    upload.outer = _last_upload.set(upload).old_value
    return upload


def close_upload(upload: Upload) -> None:
    """Close an upload at the end of its request: bytes are no longer counted."""
    writer, outer = upload.writer, upload.outer
    upload.is_open = False
    upload.json = upload.outer = upload.shown = upload.writer = None
    # The transport may have refused the body.
    if writer is not None and not writer._eof:
        upload.length, upload.ended = 0, None
    # The request around counts its body again, if it has not ended.
    if isinstance(outer, Upload) and outer.is_open:
        _last_upload.set(outer)


def _members(kind: type[ClientRequest]) -> dict[str, object]:
    whole = _WHOLE if kind.write_bytes is ClientRequest.write_bytes else ()

    # aiohttp calls this in the task of the request, and may run what it returns in
    # another.
    def write_bytes(self: Any, writer: Any, *arguments: Any) -> Any:
        body, upload = self.body, current_upload()
        # It is also called for a request without a body that waits to be continued.
        if body and upload is not None:
            is_whole = type(body) in whole and body.size <= _ONE_PIECE
            # The server, a compressor in a thread, or a tracer may take its time.
            if not is_whole or self._continue or self.compress or self._traces:
                write = partial(kind.write_bytes, self, writer, *arguments)
                return _counted(write, writer, upload)
            _, limit = arguments
            upload.length = body.size if limit is None else min(limit, body.size)
            upload.ended = asyncio.get_running_loop().time()
            upload.writer = writer
        return kind.write_bytes(self, writer, *arguments)

    send = marks_connection(kind.send)
    return {"write_bytes": write_bytes, "send": send}


measured: Final = RequestClasses(_members)
"""Makes the classes of requests that count."""

# A strong reference: RequestClasses keeps weak ones.
_of_aiohttp = measured.of(ClientRequest)


async def _counted(
    write: Callable[[], Awaitable[None]], writer: Any, upload: Upload
) -> None:
    # A body may make calls of its own, which must not be counted here.
    _last_upload.set(None)
    _count(writer, upload)
    try:
        await write()
    finally:
        del writer.write  # it refers to the writer: no cycle
    if writer._eof:
        upload.ended = asyncio.get_running_loop().time()


def _count(writer: Any, upload: Upload) -> None:
    write = writer.write
    upload.length = length = 0

    async def counted(chunk: Any, *arguments: Any, **options: Any) -> None:
        nonlocal length
        await write(chunk, *arguments, **options)
        length += memoryview(chunk).nbytes
        upload.length = length

    writer.write = counted


def follow_hops(session: ClientSession) -> None:
    """Make the requests of a session say where they go, each hop after a redirect."""
    session._request_class = _following.of(session._request_class)


def _members_of_hops(kind: type[ClientRequest]) -> dict[str, object]:
    # Each request gets its URL when it is made, before it is sent; this takes
    # fewer arguments than its __init__() does.
    def update_host(self: ClientRequest, url: URL) -> None:
        kind.update_host(self, url)
        # All hops of one call of aiohttp's have one timer.
        note_hop(url, getattr(self, "_timer", None))

    return {"update_host": update_host}


_following = RequestClasses(_members_of_hops)
# It lives on, as most sessions of groups have it.
_hopping_of_aiohttp = _following.of(measured.of(ClientRequest))


_ATTRIBUTES = {
    "_json_serialize": payload.JsonPayload,
    "_json_serialize_bytes": getattr(payload, "JsonBytesPayload", None),  # since 3.14
}


def serializer_of(session: ClientSession) -> Callable[[Any], object]:
    """Return the serializer that a session uses for ``json=``."""
    attributes = vars(session)
    serializer: Callable[[Any], object] = (
        attributes.get("_json_serialize_bytes") or attributes["_json_serialize"]
    )
    return serializer


Serializers: TypeAlias = "dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]"
"""By attribute: the wrapper of a serializer, and the serializer."""


def keep_json(session: ClientSession) -> Serializers:
    """Let the serializer of a session return the same text for a value of a call."""
    attributes, serializers = vars(session), {}
    for name, made in _ATTRIBUTES.items():
        dumps = attributes.get(name)
        if dumps is not None:
            attributes[name] = keeping = _keeping(dumps, made)
            serializers[name] = keeping, dumps
    return serializers


def restore_serializers(session: ClientSession, serializers: Serializers) -> None:
    """Undo :func:`keep_json`, unless a serializer was replaced meanwhile."""
    attributes = vars(session)
    for name, (keeping, dumps) in serializers.items():
        if attributes[name] is keeping:
            attributes[name] = dumps


def _keeping(dumps: Callable[[Any], Any], made: Any) -> Callable[[Any], Any]:
    def serialize(value: Any) -> Any:
        upload = current_upload()
        if upload is None:
            return dumps(value)
        known = upload.json
        if known is None:
            known = upload.json = []
        for earlier, kind, text in known:
            if earlier is value and kind is made:
                return text
        place = len(known)
        serialized = dumps(value)
        # Before what this serializer asked of another one.
        known.insert(place, (value, made, serialized))
        return serialized

    return serialize
