"""Define the part of a Redis client that is used, and refuse other objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from .._errors import bad_argument

if TYPE_CHECKING:
    from collections.abc import Callable


class RedisClient(Protocol):
    """The part that is used of ``redis.asyncio.Redis``, or of a client like it."""

    def register_script(self, script: str, /) -> Any:
        """Return a function that runs a script, given its keys and arguments."""

    def publish(self, channel: str, message: str, /) -> Any:
        """Send a message to all that have subscribed to a channel."""

    def pubsub(self) -> Any:
        """Return an object that subscribes to channels."""


def method_of(redis: object, name: str) -> Callable[..., Any]:
    """Return a method of a Redis client.

    Raises:
        ValueError: *redis* is no client; a class is none, though it has the method too.
    """
    method: Callable[..., Any] | None = getattr(redis, name, None)
    if method is None or isinstance(redis, type):
        raise no_client(redis)
    return method


def no_client(redis: object) -> ValueError:
    """Make the error for an object that is no asynchronous Redis client."""
    # Not its repr, which may hold a password.
    return bad_argument("redis", type(redis), "a redis.asyncio.Redis")
