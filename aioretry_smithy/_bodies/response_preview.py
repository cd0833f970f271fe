"""Keep the first characters of a response, if it is a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._body_text import BodyHead, is_text
from .._call.response_facts import headers_of
from .response_content import copy_head

if TYPE_CHECKING:
    import aiohttp

    from .._call.record import Record


def keep_preview(
    record: Record, response: aiohttp.ClientResponse, max_length: int
) -> None:
    """Let a log have the first characters of a body as they arrive."""
    content_type = headers_of(response).get("Content-Type", "")
    if is_text(content_type):
        head = BodyHead(content_type, max_length)
        if copy_head(response, head):
            record.outcome.preview = head
