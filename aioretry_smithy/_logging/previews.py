"""The decorator that shows how bodies begin."""

from __future__ import annotations

import json
from itertools import islice, takewhile
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from .. import _checks as check
from .._bodies.request_body import bytes_in_memory, form_charset, form_pairs
from .._bodies.response_content import keep_preview
from .._context.chain import find_client
from .._context.client import DecoratingClient, Decorator, HttpClient
from .._errors import bad_argument
from .._text.printable import BodyHead, is_text, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest


_SCALARS = (str, int, float, type(None))


class ContentPreviewingClient(DecoratingClient):
    """Keeps the first characters of text bodies, both ways, in the log.

    ``RequestLog.request_content_preview`` and ``response_content_preview`` have them;
    so do ``to_dict()`` and ``render()``, with secrets hidden. A preview that was cut
    ends with ``…``. Inside a retrying client each attempt has its own; outside only the
    last response of the call has one. After Armeria's ``ContentPreviewingClient``.

    It neither reads the response nor waits for it, and does not wrap its stream. It
    copies the bytes as they arrive, so the preview grows while the caller reads.

    A body is text by its Content-Type, as are ``text/*``, JSON, XML, forms, JavaScript,
    YAML, SQL, TOML and GraphQL. Its charset is that of the Content-Type, or UTF-8. Of a
    request, only a body in memory has a preview: ``str``, ``json=``, fields that are
    sent urlencoded, and bytes with the Content-Type of a text. The preview is None for
    an empty body, other types, files, streams, factories and multipart forms, and for a
    body that a client further in has begun to read.

    Args:
        delegate: The next client inwards.
        max_length: How many characters to keep.
    """

    _serves = "sessions"

    def __init__(self, delegate: HttpClient, max_length: int) -> None:
        super().__init__(delegate)
        self._max_length = max_length

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Keep how the request begins, send it, and copy how the response begins."""
        record = ctx.record
        preview = preview_of_request(
            request, ctx.call.default_headers, self._max_length
        )
        if preview != record.request_preview:
            record.request_preview = preview
        if ctx.call.reads_whole_bodies:
            # One that fails gets no further than where it is read.
            record.preview_length = self._max_length
        response = await self.delegate.execute(ctx, request)
        # Of the record of a resend or a hedge, if one took the place of the first.
        keep_preview(ctx.record, response, self._max_length)
        return response

    @classmethod
    def new_decorator(cls, max_length: int) -> Decorator:
        """Make a decorator for a session builder.

        Add it before a :class:`LoggingClient` that is to show what it keeps.

        Args:
            max_length: How many characters to keep of each body, >= 1. A log holds
                about four bytes for each as long as it lives.

        Raises:
            ValueError: *max_length* is not as described; or, when the decorator is
                added to a chain, that has one already.

        >>> builder = SessionBuilder().decorator(
        ...     ContentPreviewingClient.new_decorator(200)
        ... )
        >>> ContentPreviewingClient.new_decorator(0)
        Traceback (most recent call last):
            ...
        ValueError: max_length: 0 (expected: an int >= 1)
        """
        check.integer("max_length", max_length, 1)

        def decorator(delegate: HttpClient) -> HttpClient:
            if find_client(delegate, ContentPreviewingClient) is not None:
                expected = "at most one ContentPreviewingClient"
                raise bad_argument("decorators", 2, expected)
            return cls(delegate, max_length)

        return decorator

    def describe(self) -> str:
        """Return one line for ``SessionBuilder.describe()``: name and settings."""
        return f"{type(self).__name__}(max_length={self._max_length})"


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
        """Return *value*, pruned to the space left."""
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
