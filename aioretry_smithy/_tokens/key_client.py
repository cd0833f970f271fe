"""Give each call a key by which the server recognises its repetitions."""

from __future__ import annotations

import inspect
import uuid
from typing import TYPE_CHECKING, TypeAlias

from .. import _checks as check
from .._call.call import BoundHeader, IdempotencyKey
from .._call.recorder import record_failure
from .._context.client import DecoratingClient, Decorator, HttpClient
from .._errors import bad_argument
from .._failures.failure import judge
from .._policies.conditions import methods_of
from .._request.arguments import check_header_name, is_header_value
from .._request.keys import OwnHosts
from .._text.printable import name_without_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import aiohttp

    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest

    KeyFunction: TypeAlias = Callable[[ClientRequestContext, HttpRequest], str | None]


class IdempotencyKeyClient(DecoratingClient[HttpClient]):
    """Adds an idempotency key to unsafe requests, so that retries are safe.

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

    def __init__(
        self,
        delegate: HttpClient,
        header: str,
        methods: frozenset[str],
        key: KeyFunction | None,
        hosts: OwnHosts,
    ) -> None:
        super().__init__(delegate)
        self._header = header
        self._methods = methods
        self._key = key
        self._hosts = hosts
        self._needs_origin = not hosts.are_given

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

        Add it only for servers that honour the header: it is a promise that a request
        may be repeated.

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
        check_header_name(header)
        named = methods_of(methods)
        if named is None:
            raise bad_argument("methods", methods, 'a collection such as ["POST"]')
        check.function("key", key, "the context and the request")
        own_hosts = OwnHosts(hosts)
        return lambda delegate: cls(delegate, header, named, key, own_hosts)

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send the request, with an idempotency key if necessary."""
        try:
            request = self._with_key(ctx, request)
        except BaseException as cause:
            record_failure(ctx, cause)
            raise
        return await self.delegate.execute(ctx, request)

    def _with_key(self, ctx: ClientRequestContext, request: HttpRequest) -> HttpRequest:
        """Return the request with an idempotency key, or unchanged if unnecessary."""
        call, header = ctx.call, self._header
        if request.method not in self._methods:
            return request
        if not self._hosts.have(request, call.defaults.base_url):
            return request
        before = call.key
        if before is not None and before.was_made_for(request):
            # By another such client further out.
            return request
        if header in request.merged_headers(call.default_headers):
            call.own_resources().key = IdempotencyKey(header, None, request)
            return request
        if before is not None and before.value is not None and before.is_for(request):
            # A decorator further out sends it once more, such as after a 401.
            value: str | None = before.value
        else:
            value = self._made(ctx, request)
        if value is None:
            return request
        resources = call.own_resources()
        resources.key = IdempotencyKey(header, value, request)
        resources.bind(BoundHeader(header, self._hosts))
        return request.with_header(header, value)

    def _made(self, ctx: ClientRequestContext, request: HttpRequest) -> str | None:
        """Return a random key, or what the user's function makes."""
        key = self._key
        if key is None:
            return str(uuid.uuid4())
        try:
            return self._checked(key(ctx, request))
        except Exception as cause:
            # No retry would mend it.
            judge(cause).raised_by_caller = True
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

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        settings = [f"header={self._header!r}", f"methods={sorted(self._methods)!r}"]
        if self._key is not None:
            settings.append(f"key={name_without_arguments(self._key)}")
        if self._hosts.shown is not None:
            settings.append(f"hosts={self._hosts.shown!r}")
        return f"{type(self).__name__}({', '.join(settings)})"
