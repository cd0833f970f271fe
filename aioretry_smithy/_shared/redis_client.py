"""Say what is asked of a client of Redis."""

from __future__ import annotations

from typing import Any, Protocol


class RedisClient(Protocol):
    """The part that is used of ``redis.asyncio.Redis``, or of a client like it."""

    def register_script(self, script: str, /) -> Any:
        """Return what runs a script, given its keys and arguments."""

    def publish(self, channel: str, message: str, /) -> Any:
        """Send a message to all that have subscribed to a channel."""

    def pubsub(self) -> Any:
        """Return what subscribes to channels."""
