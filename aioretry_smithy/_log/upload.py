"""Count the bytes of a request body that are sent, and keep the text of its JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp.payload import Payload

SerializedJson: TypeAlias = "tuple[object, Callable[..., Payload], str | bytes]"
"""An object given as JSON, the class that aiohttp makes its body of, and its text."""


class Upload:
    """The bytes of a body that were sent, and when the last one was."""

    # The values are the class's: every call with a body makes one of these.

    length: int | None = None
    """The bytes so far; None where no body was sent to count, as with a mock."""

    ended: float | None = None
    """When the last byte was sent, by the event loop's clock."""

    is_open: bool = True
    """Whether its request is being sent; an open upload counts the next body."""

    json: list[SerializedJson] | None = None
    """The JSON that was serialized for it, while it is open."""

    outer: Upload | None = None
    """The open upload of a request around this one, while this one is open."""

    writer: Any = None
    """aiohttp's writer of a body that leaves in one piece, while the upload is open."""


class _NoBody(Upload):
    length = 0
    is_open = False


NO_BODY: Final = _NoBody()
"""The upload of requests without a body. Nothing is written into it."""
