"""Serialize JSON once a call, and send the same text in each attempt."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from aiohttp import payload

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import ClientSession
    from aiohttp.payload import Payload

    from .._call.resources import CallResources, Note

_ATTRIBUTES = {
    "_json_serialize": payload.JsonPayload,
    "_json_serialize_bytes": getattr(payload, "JsonBytesPayload", None),  # since 3.14
}

_sending: ContextVar[list[Note] | None] = ContextVar(
    "aioretry_smithy_json", default=None
)


class JsonOnce:
    """Keeps the result of a session's serializer for the next attempts of a call.

    aiohttp serializes ``json=`` before it first awaits anything. So the serializer runs
    for the request that was passed to aiohttp last.
    """

    __slots__ = ("_serializers", "sending")

    sending: list[Note] | None
    """The notes of the call whose request was passed to aiohttp last."""

    def __init__(self) -> None:
        self.sending = None
        self._serializers: dict[str, tuple[Any, Any]] = {}

    def install(self, session: ClientSession) -> None:
        """Wrap the serializer of *session*."""
        attributes = vars(session)
        for name, made in _ATTRIBUTES.items():
            dumps = attributes.get(name)
            if dumps is not None:
                attributes[name] = noting = self._noting(dumps, made)
                self._serializers[name] = (noting, dumps)

    def remove(self, session: ClientSession) -> None:
        """Undo :meth:`install`, unless the serializer was replaced meanwhile."""
        attributes = vars(session)
        for name, (noting, dumps) in self._serializers.items():
            if attributes[name] is noting:
                attributes[name] = dumps

    def begin(
        self, resources: CallResources, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the arguments, with the serialized JSON of an earlier attempt."""
        value = arguments["json"]
        for known, made, serialized in resources.json:
            if known is value:
                return {**arguments, "json": None, "data": _body(made, serialized)}
        self.sending = resources.json
        return arguments

    def _noting(self, dumps: Callable[[Any], Any], made: Any) -> Callable[[Any], Any]:
        def serialize(value: Any) -> Any:
            notes, self.sending = self.sending, None
            serialized = dumps(value)
            if notes is not None:
                notes.append((value, made, serialized))
            return serialized

        return serialize


class JsonOncePerTask(JsonOnce):
    """The same where a method that stands before aiohttp's may wait.

    Then requests of other tasks may be passed on before a request is serialized.
    """

    __slots__ = ()

    @property
    def sending(self) -> list[Note] | None:
        """The notes of the call that this task has passed on last."""
        return _sending.get()

    @sending.setter
    def sending(self, notes: list[Note] | None) -> None:
        _sending.set(notes)


def _body(made: Callable[..., Payload], serialized: str | bytes) -> Payload:
    return made(None, dumps=lambda _: serialized)
