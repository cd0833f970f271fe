"""Count what is sent of the body of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence


class Upload:
    """The bytes of a body that were sent, and when the last one was."""

    # Defaults of the class: each call with a body makes an upload.
    length: int | None = None
    """The bytes so far; None where nobody counts, as with a mock."""

    ended: float | None = None
    """When the last byte was sent, by the event loop's clock."""

    json: Sequence[Any] = ()
    """What was given as JSON, each with what makes its body again."""

    outer: Upload | None = None
    """That of the request that was being sent when this one began."""

    is_over: bool = False
    """Whether its request was sent, or failed."""


NO_BODY: Final = Upload()
"""That of requests without a body. Nothing else is written into it."""

NO_BODY.length = 0
