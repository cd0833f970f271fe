"""The decorator that shows how bodies begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._bodies.response_content import copy_head
from .._body_text import BodyHead, is_text
from .._call.hooks import Hooks, Sign
from .._context.client import DecoratingClient, find_client
from .._errors import bad_argument, check_int
from .request_preview import preview_of_request

if TYPE_CHECKING:
    import aiohttp

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._context.client import Decorator, HttpClient
    from .._request.request import HttpRequest


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
        self._hooks = _PreviewHooks(max_length)

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
        check_int("max_length", max_length, 1)

        def decorator(delegate: HttpClient) -> HttpClient:
            if find_client(delegate, ContentPreviewingClient) is not None:
                expected = "at most one ContentPreviewingClient"
                raise bad_argument("decorators", 2, expected)
            return cls(delegate, max_length)

        return decorator

    def describe(self) -> str:
        """Return one line for ``SessionBuilder.describe()``: name and settings."""
        return f"{type(self).__name__}(max_length={self._max_length})"


class _PreviewHooks(Hooks):
    __slots__ = ("_max_length",)

    def __init__(self, max_length: int) -> None:
        self._max_length = max_length

    def enter(self, call: Call, scope: Scope, request: HttpRequest) -> None:
        scope.record.request_preview = preview_of_request(
            request, call.default_headers, self._max_length
        )

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: None,
        result: aiohttp.ClientResponse | Sign,
        cause: Exception | None,
    ) -> None:
        if isinstance(result, Sign):
            return
        content_type = result.headers.get("Content-Type", "")
        if is_text(content_type):
            head = BodyHead(content_type, self._max_length)
            if copy_head(result, head):
                # That of a resend or a hedge, if one took the place of the first.
                scope.record.outcome.preview = head
