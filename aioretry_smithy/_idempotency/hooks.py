"""Add a key to requests that have none."""

from __future__ import annotations

import inspect
import uuid
from typing import TYPE_CHECKING, TypeAlias

from .._call.defaults import OF_ALL
from .._call.hooks import PASS, Changed, Hooks
from .._call.stamps import BoundHeader, IdempotencyKey
from .._context.context import context_of
from .._failures.marks import mark_raised_by_caller
from .._request.header_text import is_header_value
from .._text import name_without_arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._call.call import Call
    from .._call.hooks import Scope, Sign
    from .._context.context import ClientRequestContext
    from .._request.own_hosts import OwnHosts
    from .._request.request import HttpRequest

    KeyFunction: TypeAlias = Callable[[ClientRequestContext, HttpRequest], str | None]


class KeyHooks(Hooks):
    """Adds a key to the requests of some methods, one for each call.

    Args:
        header: The name of the header.
        methods: The methods, in upper case.
        key: Makes the key, or None; None for a random one.
        hosts: The servers that get keys.
    """

    __slots__ = ("_header", "_key", "_methods", "hosts")

    hosts: OwnHosts
    """The servers that get keys."""

    def __init__(
        self,
        header: str,
        methods: frozenset[str],
        key: KeyFunction | None,
        hosts: OwnHosts,
    ) -> None:
        self._header = header
        self._methods = methods
        self._key = key
        self.hosts = hosts

    def enter(self, call: Call, scope: Scope, request: HttpRequest) -> Sign:
        """Send a request with a key; as it is where it needs none.

        Raises:
            Exception: The user's function has raised it, or returned no key.
        """
        if request.method not in self._methods:
            return PASS
        if not self.hosts.have(request, call.defaults.base_url):
            return PASS
        before = call.key
        if before is not None and before.was_made_for(request):
            # By another such client further out.
            return PASS
        if self._header in request.merged_headers(call.default_headers):
            call.needs_care().key = IdempotencyKey(self._header, None, request)
            return PASS
        if before is not None and before.value is not None and before.is_for(request):
            # A decorator further out sends it once more, such as after a 401.
            value = before.value
        elif self._key is None:
            value = str(uuid.uuid4())
        else:
            made = self._made(self._key, call, scope, request)
            if made is None:
                return PASS
            value = made
        resources, call.care = call.needs_care(), OF_ALL
        resources.key = IdempotencyKey(self._header, value, request)
        resources.bind(BoundHeader(self._header, self.hosts))
        return Changed(request.with_header(self._header, value), PASS)

    def _made(
        self, key: KeyFunction, call: Call, scope: Scope, request: HttpRequest
    ) -> str | None:
        """Return the key that the user's function makes."""
        try:
            return self._checked(key(context_of(call, scope), request))
        except Exception as cause:
            # No retry would mend it.
            mark_raised_by_caller(cause)
            raise

    def _checked(self, made: object) -> str | None:
        if made is None or is_header_value(made):
            return made
        if inspect.iscoroutine(made):
            made.close()
        what = "a text" if isinstance(made, str) else f"a {type(made).__name__}"
        name = name_without_arguments(self._key)
        expected = "a text that a header may carry, without line ends, or None"
        message = f"key: {name} returned {what} (expected: {expected})"
        raise TypeError(message)

    def settings(self) -> str:
        """Return the settings, for descriptions."""
        key = "" if self._key is None else f", key={name_without_arguments(self._key)}"
        hosts = "" if self.hosts.shown is None else f", hosts={self.hosts.shown!r}"
        return f"header={self._header!r}, methods={sorted(self._methods)!r}{key}{hosts}"
