"""Hold what all calls of a session, or of a function, begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._masking.mask import DEFAULT_MASK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._masking.mask import Mask


class CallDefaults:
    """What calls have in common that begin alike; never changed.

    Args:
        mask: What their views hide.
        headers: A copy of the session's headers; None of a function.
    """

    __slots__ = ("headers", "mask", "version")

    mask: Mask
    """What the views of a call hide."""

    headers: Mapping[str, str] | None
    """A copy of the session's headers; None of a function."""

    version: int
    """The version of the session's headers; -1 where nobody knows."""

    def __init__(
        self, mask: Mask = DEFAULT_MASK, headers: Mapping[str, str] | None = None
    ) -> None:
        self.mask = mask
        self.headers = headers
        self.version = -1
