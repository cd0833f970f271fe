"""Define the part of a Redis client that is used, and refuse other objects."""

from __future__ import annotations

from typing import Any, Protocol

from .._errors import bad_argument


class RedisClient(Protocol):
    """The part that is used of ``redis.asyncio.Redis``, or of a client like it."""

    def register_script(self, script: str, /) -> Any:
        """Return a function that runs a script, given its keys and arguments."""

    def publish(self, channel: str, message: str, /) -> Any:
        """Send a message to all that have subscribed to a channel."""

    def pubsub(self) -> Any:
        """Return an object that subscribes to channels."""


def check_client(redis: object, name: str) -> None:
    """Refuse what has no method of that name, or is a class that has it.

    Raises:
        ValueError: *redis* is no client.
    """
    if getattr(redis, name, None) is None or isinstance(redis, type):
        raise no_client(redis)


def no_client(redis: object) -> ValueError:
    """Make the error for an object that is no asynchronous Redis client."""
    # Not its repr, which may hold a password.
    return bad_argument("redis", type(redis), "a redis.asyncio.Redis")
