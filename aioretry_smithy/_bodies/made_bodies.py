"""Hold all that a factory makes in a call to one content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._text import name_without_arguments
from .replayable_payload import ReplayablePayload
from .sent_content import SentContent

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp.payload import Payload

    from .replayable_payload import Shape


class MadeBodies:
    """The bodies that a factory makes in a call, which are to be equal.

    Args:
        factory: What the caller gave.
    """

    may_differ = True

    def __init__(self, factory: Callable[[], object]) -> None:
        self.source: object = factory
        self.sent = SentContent(name_without_arguments(factory))
        self._shape: Shape | None = None
        self._bodies: list[ReplayablePayload] = []

    @property
    def is_spent(self) -> bool:
        """Whether the factory has made another body than before."""
        return self.sent.refusal is not None

    def body_of(self, product: object) -> ReplayablePayload | None:
        """Return the body of an object that the factory has returned before."""
        return next((each for each in self._bodies if each.source is product), None)

    def take(self, product: object, payload: Payload) -> ReplayablePayload:
        """Return the body to send of what the factory has made.

        Raises:
            SpentBodyError: It is longer or shorter than what was sent before.
        """
        body = ReplayablePayload(product, payload, self.sent)
        if self._shape is None:
            self._shape = body.shape
        else:
            body.take_shape(self._shape)
        if not isinstance(product, str | bytes | bytearray | memoryview):
            self._bodies.append(body)
        self.sent.expect(body.size)
        return body

    def take_none(self) -> None:
        """Note that it has made none.

        Raises:
            SpentBodyError: Something was sent before.
        """
        self.sent.expect_at_most(0)
        self.sent.is_whole = True

    async def end(self) -> None:
        """Close those that aiohttp would have closed."""
        self.sent.forget_refusal()
        for body in self._bodies:
            await body.end()
