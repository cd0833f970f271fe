"""Serialize JSON once a call, and send the same text in each attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from aiohttp import payload

from .uploads import current_upload

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import ClientSession

_ATTRIBUTES = {
    "_json_serialize": payload.JsonPayload,
    "_json_serialize_bytes": getattr(payload, "JsonBytesPayload", None),  # since 3.14
}


Serializers: TypeAlias = "dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]"
"""By attribute: the function that stands in front of a serializer, and that one."""


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
