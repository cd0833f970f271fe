"""Keep the first characters of bodies, both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._bodies.response_content import copy_head
from .._body_text import BodyHead, is_text
from .._call.hooks import NOTHING, Hooks
from .request_preview import preview_of_request

if TYPE_CHECKING:
    from .._call.call import Call
    from .._call.hooks import Scope


class PreviewHooks(Hooks):
    """Copies the beginning of each body.

    Args:
        max_length: How many characters to keep.
    """

    __slots__ = ("_max_length",)

    def __init__(self, max_length: int) -> None:
        self._max_length = max_length

    def enter(self, call: Call, scope: Scope, request: Any) -> None:
        """Keep how the body of the request begins."""
        scope.record.request_preview = preview_of_request(
            request, call.default_headers, self._max_length
        )

    def leave(
        self,
        call: Call,
        scope: Scope,
        permit: None,
        result: Any,
        cause: Exception | None,
    ) -> None:
        """Keep how that of the response begins, as it arrives."""
        if result is NOTHING:
            return
        content_type = result.headers.get("Content-Type", "")
        if is_text(content_type):
            head = BodyHead(content_type, self._max_length)
            if copy_head(result, head):
                # That of a resend or a hedge, if one took the place of the first.
                scope.record.outcome.preview = head
