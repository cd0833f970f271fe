"""The first characters of the body of a request that is text and in memory."""

from __future__ import annotations

import json
from itertools import islice, takewhile
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from .._bodies.request_body import bytes_in_memory, form_charset, form_pairs
from .._body_text import BodyHead, is_text, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._request.request import HttpRequest

_SCALARS = (str, int, float, type(None))


def preview_of_request(
    request: HttpRequest, defaults: Mapping[str, str] | None, max_length: int
) -> str | None:
    """Return the first characters of what aiohttp is about to send, or None.

    A file, a stream, a factory, a multipart form are not touched. Never raises.
    """
    options = request.options
    if options.get("data") is None and options.get("json") is None:
        return None
    headers = request.merged_headers(defaults)
    if "Content-Encoding" in headers:
        return None
    try:
        return _preview(options, headers.get("Content-Type"), max_length)
    except Exception:
        # Either aiohttp complains too, or the session's own JSON can do more.
        return None


def _preview(
    options: Mapping[str, object], content_type: str | None, max_length: int
) -> str | None:
    data = options.get("data")
    held = bytes_in_memory(data)
    if held is not None:
        body, usual_type = held
        return _of_bytes(body, content_type or usual_type, max_length)
    if content_type is not None and not is_text(content_type):
        return None
    if isinstance(data, str):
        return shortened(data[: max_length + 1], max_length)
    if data is None:
        text = json.dumps(_Pruning(max_length + 1).prune(options["json"]))
        return shortened(text, max_length)
    pairs = form_pairs(data)
    return None if pairs is None else _of_form(pairs, form_charset(data), max_length)


def _of_bytes(
    body: bytes | bytearray | memoryview, content_type: str, max_length: int
) -> str | None:
    if not is_text(content_type):
        return None
    head = BodyHead(content_type, max_length)
    head.add(memoryview(body).cast("B"))
    return head.text()


def _of_form(
    pairs: list[tuple[str, object]], charset: str, max_length: int
) -> str | None:
    if not all(isinstance(value, _SCALARS) for _, value in pairs):
        # Bytes and files make it multipart, with any other fields.
        return None
    longest = max_length + 1
    shown = [
        (name, value[:longest] if isinstance(value, str) else value)
        for name, value in islice(pairs, longest)
    ]
    return shortened(urlencode(shown, encoding=charset), max_length)


class _Pruning:
    """Leaves out of a document what stands behind its first characters in JSON."""

    def __init__(self, room: int) -> None:
        self._longest = self._room = room

    def prune(self, value: object) -> object:
        """Return *value*, or as much of it as there is room for."""
        self._room -= 1
        if isinstance(value, str):
            value = value[: self._longest]
            self._room -= len(value)
        elif isinstance(value, dict):
            return {
                self.prune(name): self.prune(item)
                for name, item in takewhile(self._has_room, value.items())
            }
        elif isinstance(value, list | tuple):
            return [self.prune(item) for item in takewhile(self._has_room, value)]
        return value

    def _has_room(self, _: object) -> bool:
        return self._room > 0
