"""Give each call a key by which the server recognises its repetitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._context.client import DecoratingClient, HttpClient
from .._errors import bad_argument, is_plain_function
from .._request.header_text import check_header_name
from .._request.own_hosts import OwnHosts
from .._rules.conditions import methods_of
from .hooks import KeyHooks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .._context.client import Decorator
    from .hooks import KeyFunction


class IdempotencyKeyClient(DecoratingClient[HttpClient]):
    """Adds a key to calls that change something, so that they may be retried.

    A server that knows the header answers a repeated request as it answered the first
    one. All attempts of a call have the same key, and a call made anew has another. A
    key of the caller's own stays, as does one of the session.

    - A request with a key is idempotent for :meth:`RetryStrategy.failsafe` and for
      :func:`smithy.only_idempotent`, whatever the header is called.
    - One with a key that was made here is not hedged.
    - Strangers get no key: requests to other servers than the session's own, and those
      that a redirect leads to another origin.

    >>> builder = (
    ...     SessionBuilder("https://api.example.com")
    ...     .decorator(RetryingClient.new_decorator(RetryStrategy.failsafe()))
    ...     .decorator(IdempotencyKeyClient.new_decorator())
    ... )
    """

    _serves = "sessions"
    _stays_outside = True
    _hooks: KeyHooks

    def __init__(self, delegate: HttpClient, hooks: KeyHooks) -> None:
        super().__init__(delegate)
        self._hooks = hooks
        self._needs_origin = not hooks.hosts.are_given

    @classmethod
    def new_decorator(
        cls,
        *,
        header: str = "Idempotency-Key",
        methods: Iterable[str] = ("POST", "PATCH"),
        key: KeyFunction | None = None,
        hosts: Iterable[str] | None = None,
    ) -> Decorator:
        """Return a decorator for a session builder.

        Add it only for servers that heed the header: it is a promise that a request may
        be repeated.

        Args:
            header: The name of the header.
            methods: The methods whose requests get a key.
            key: A plain function of the context and the request that makes the key, or
                None of a request that shall have none; by default it is a random UUID.
            hosts: The servers that get keys: hosts, with a port or not, or whole
                origins such as ``https://api.example.com:8443``; no subdomains. A bare
                host means ``https``, or the session's own scheme. None: the origin of
                the session's base URL, or its group.

        Returns:
            The decorator. Put it outside of the retrying client.

        Raises:
            ValueError: An argument is not as described; or, when the session is built,
                the decorator stands inside a retrying client, or there are no *hosts*
                and the session has neither a base URL nor a group.

        >>> decorator = IdempotencyKeyClient.new_decorator(
        ...     header="X-Request-Id",
        ...     key=lambda ctx, request: ctx.attributes.get("order"),
        ... )
        """
        check_header_name("header", header)
        named = methods_of(methods)
        if named is None:
            raise bad_argument("methods", methods, 'a collection such as ["POST"]')
        if key is not None and not is_plain_function(key):
            expected = "a plain function of the context and the request, or None"
            raise bad_argument("key", key, expected)
        hooks = KeyHooks(header, named, key, OwnHosts(hosts))

        def decorator(delegate: HttpClient) -> HttpClient:
            return cls(delegate, hooks)

        return decorator

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        return f"{type(self).__name__}({self._hooks.settings()})"
