"""JSON that is serialized once a call: what went out first goes out again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import payload

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import ClientSession

    from .._call.resources import CallResources, Notes

_ATTRIBUTES = {
    "_json_serialize": payload.JsonPayload,
    "_json_serialize_bytes": getattr(payload, "JsonBytesPayload", None),  # since 3.14
}


class JsonOnce:
    """Notes what a session's serializer makes of ``json=``, for the next attempt.

    aiohttp is given ``json=`` as it came and serializes it before it first waits for
    anything, so that the call that began last is the one that is being sent.
    """

    __slots__ = ("_serializers", "sending")

    sending: Notes | None
    """The notes of the call whose JSON is about to be serialized."""

    def __init__(self) -> None:
        self.sending = None
        self._serializers: dict[str, tuple[Any, Any]] = {}

    def install(self, session: ClientSession) -> None:
        """Put this in front of the serializer of *session*."""
        attributes = vars(session)
        for name, made in _ATTRIBUTES.items():
            dumps = attributes.get(name)
            if dumps is not None:
                attributes[name] = noting = self._noting(dumps, made)
                self._serializers[name] = (noting, dumps)

    def remove(self, session: ClientSession) -> None:
        """Undo :meth:`install`, but for a serializer that was replaced meanwhile."""
        attributes = vars(session)
        for name, (noting, dumps) in self._serializers.items():
            if attributes[name] is noting:
                attributes[name] = dumps

    def begin(
        self, resources: CallResources, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the arguments with the JSON as an earlier attempt has sent it."""
        value = arguments["json"]
        for known, make in resources.json:
            if known is value:
                return {**arguments, "json": None, "data": make()}
        self.sending = resources.json
        return arguments

    def _noting(self, dumps: Callable[[Any], Any], made: Any) -> Callable[[Any], Any]:
        def serialize(value: Any) -> Any:
            notes, self.sending = self.sending, None
            serialized = dumps(value)
            if notes is not None:
                make = partial(made, None, dumps=lambda _: serialized)
                notes.append((value, make))
            return serialized

        return serialize
