"""Send a request body whole and identical in every attempt, or not at all."""

from __future__ import annotations

import io
from collections.abc import AsyncIterable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

import aiohttp
from aiohttp import payload
from aiohttp.payload import PAYLOAD_REGISTRY, Payload
from multidict import MultiDict, MultiDictProxy

from .._request.arguments import has_payload
from .._text.printable import name_without_arguments
from .replayable_payload import IN_MEMORY, ReplayablePayload, SentContent

if TYPE_CHECKING:
    from .._call.call import Call
    from .._request.request import HttpRequest
    from .replayable_payload import Shape, SpentBodyError


class MadeBodies:
    """The bodies that a factory makes in a call, which are to be equal."""

    may_differ = True

    def __init__(self, factory: Callable[[], object]) -> None:
        self.source: object = factory
        self.sent = SentContent(name_without_arguments(factory))
        self._shape: Shape | None = None
        self._bodies: list[ReplayablePayload] = []

    @property
    def is_spent(self) -> bool:
        """Whether the factory has made another body than before."""
        return self.sent.refusal is not None

    def body_of(self, product: object) -> ReplayablePayload | None:
        """Return the body of an object that the factory has returned before."""
        return next((each for each in self._bodies if each.source is product), None)

    def take(self, product: object, payload: Payload) -> ReplayablePayload:
        """Return the body to send of what the factory has made."""
        body = ReplayablePayload(product, payload, self.sent)
        if self._shape is None:
            self._shape = body.shape
        else:
            body.take_shape(self._shape)
        if not isinstance(product, str | bytes | bytearray | memoryview):
            self._bodies.append(body)
        self.sent.expect(body.size)
        return body

    def take_none(self) -> None:
        """Note that the factory has made no body."""
        self.sent.expect_at_most(0)
        self.sent.is_whole = True

    async def end(self) -> None:
        """Close the bodies that aiohttp would have closed."""
        self.sent.forget_refusal()
        for body in self._bodies:
            await body.end()


_OF_CALLS = ReplayablePayload | MadeBodies

_TEXT = (str, int, float, type(None))
_VALUES = (*_TEXT, bytes, bytearray, memoryview)


def prepare(call: Call, data: object) -> object:
    """Return the body to pass to aiohttp for one attempt.

    A body that aiohttp sends alike each time is returned as it is. A factory is called
    for a fresh body, which has to equal what was sent before. Any other body is wrapped
    for the whole call: opened once, rewound for each attempt, closed at the end, and
    refused if it cannot be sent whole again.
    """
    if _is_factory(data):
        return _made(call, data)
    if _can_be_sent_again(data):
        return data
    body = _find(call, data)
    if body is None:
        # aiohttp reads such a text at once.
        start = data.tell() if isinstance(data, io.StringIO) else None
        inner = _payload(data)
        if inner is None:
            return data
        body = ReplayablePayload(data, inner, start=start)
        _keep(call, body)
    _refuse_spent(body)
    return body


def _made(call: Call, factory: Callable[[], object]) -> object:
    """Return the body that a factory makes for one attempt."""
    made = _find(call, factory)
    if not isinstance(made, MadeBodies):
        made = MadeBodies(factory)
        _keep(call, made)
    _refuse_spent(made)
    product = factory()
    if product is None:
        made.take_none()
        return None
    # Another factory of the call may return the same.
    body = next(filter(None, (each.body_of(product) for each in _kept(call))), None)
    if body is None:
        inner = _payload(product)
        return product if inner is None else made.take(product, inner)
    _refuse_spent(body)
    return body


def is_spent(call: Call, request: HttpRequest) -> bool:
    """Say whether sending *request* once more would be refused."""
    data = request.arguments.get("data")
    body = None if data is None else _find(call, data)
    return body is not None and body.is_spent


def spent_body_behind(call: Call, cause: BaseException) -> SpentBodyError | None:
    """Return the refusal of a body for which aiohttp has given up a connection."""
    for body in _kept(call):
        refusal = body.sent.refusal
        if refusal is not None and cause.__cause__ is refusal:
            return refusal
    return None


def may_differ(call: Call) -> bool:
    """Say whether a body of the call may turn out not to be what was sent before."""
    return any(body.may_differ for body in _kept(call))


def can_be_sent_at_once(data: object) -> bool:
    """Say whether two requests can send a body at the same time: it is in memory."""
    if type(data) in IN_MEMORY or _has_fields_of(data, _VALUES):
        return True
    return _can_be_sent_again(data)


def bytes_in_memory(data: object) -> tuple[bytes | bytearray | memoryview, str] | None:
    """Return a body of bytes, with the Content-Type that aiohttp would send."""
    if isinstance(data, bytes | bytearray | memoryview):
        return data, "application/octet-stream"
    if type(data) in IN_MEMORY and isinstance(data, payload.BytesPayload):
        return data._value, data.content_type
    return None


def form_pairs(data: object) -> list[tuple[str, object]] | None:
    """Return the fields of a body that aiohttp sends urlencoded, None of any other."""
    if isinstance(data, aiohttp.FormData):
        if data.is_multipart:
            return None
        return [(options["name"], value) for options, _, value in data._fields]
    if isinstance(data, dict | MultiDict | MultiDictProxy):
        return list(data.items())
    if isinstance(data, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in data
    ):
        return [(name, value) for name, value in data]
    return None


def is_form_of_files(data: object) -> bool:
    """Say whether a body is an unused multipart form of texts, bytes and files."""
    return (
        isinstance(data, aiohttp.FormData)
        and data.is_multipart
        and bool(data._fields)
        and all(isinstance(each, (*_VALUES, io.IOBase)) for *_, each in data._fields)
    )


def form_charset(data: object) -> str:
    """Return the charset in which aiohttp encodes the fields of a form."""
    return (isinstance(data, aiohttp.FormData) and data._charset) or "utf-8"


def _is_factory(data: object) -> TypeGuard[Callable[[], object]]:
    if not callable(data) or isinstance(
        data, aiohttp.FormData | Payload | io.IOBase | AsyncIterable | type
    ):
        return False
    # A stream made by aiohttp's own decorator can be called, but is a body.
    return not has_payload(data)


def _can_be_sent_again(data: object) -> bool:
    if isinstance(data, _VALUES):
        return True
    if isinstance(data, aiohttp.FormData):
        # A multipart form makes one writer, which counts as consumed once closed.
        return not data.is_multipart
    # With a field of bytes aiohttp makes a multipart, of another boundary each time.
    return _has_fields_of(data, _TEXT)


def _has_fields_of(data: object, kinds: tuple[type, ...]) -> bool:
    """Say whether a body is a container of pairs, all with values of these kinds."""
    if isinstance(data, Mapping):
        data = list(data.items())
    if not isinstance(data, list | tuple):
        return False
    for pair in filter(None, data):
        if not (isinstance(pair, list | tuple) and isinstance(pair[-1], kinds)):
            return False
    return True


def _payload(data: Any) -> Payload | None:
    """Make the payload that aiohttp would make, or None if it would raise."""
    if isinstance(data, aiohttp.FormData):
        data = data()
    try:
        return PAYLOAD_REGISTRY.get(data, disposition=None)
    except payload.LookupError:
        pass
    try:
        return aiohttp.FormData(data)()
    except (TypeError, ValueError):
        return None


def _find(call: Call, data: object) -> ReplayablePayload | MadeBodies | None:
    return next((body for body in _kept(call) if body.source is data), None)


def _kept(call: Call) -> list[ReplayablePayload | MadeBodies]:
    bodies = () if call.resources is None else call.resources.bodies
    return [each for each in bodies if isinstance(each, _OF_CALLS)]


def _keep(call: Call, body: ReplayablePayload | MadeBodies) -> None:
    resources = call.own_resources()
    resources.bodies = [*resources.bodies, body]


def _refuse_spent(body: ReplayablePayload | MadeBodies) -> None:
    if body.is_spent:
        raise body.sent.refuse("was read by an earlier attempt")
