"""Count the bytes of a request body that are sent."""

from __future__ import annotations

from typing import Final


class Upload:
    """The bytes of a body that were sent, and when the last one was."""

    # Defaults of the class: each body that is sent makes an upload.
    length: int | None = None
    """The bytes so far; None where nobody counts, as with a mock."""

    ended: float | None = None
    """When the last byte was sent, by the event loop's clock."""

    is_open: bool = True
    """Whether its request is being sent; an open upload counts the next body."""


NO_BODY: Final = Upload()
"""The upload of requests without a body. Nothing else is written into it."""

NO_BODY.length, NO_BODY.is_open = 0, False

NOT_COUNTED: Final = Upload()
"""The upload of requests whose body is not counted. Nothing is written into it."""

NOT_COUNTED.is_open = False
