"""A client that sends a token with requests, and fetches a new one on 401."""

from __future__ import annotations

import inspect
from math import inf
from typing import TYPE_CHECKING, Final

import aiohttp

from .._bodies.replayable_payload import SpentBodyError
from .._bodies.request_body import is_spent, may_differ
from .._bodies.response_content import discard, keep
from .._call.call import BoundHeader, Call
from .._call.closing import unless_closed
from .._call.outcome import history_of, url_of
from .._call.recorder import follow_rejected, record_failure
from .._call.time_limits import TimeLimits
from .._context.client import DecoratingClient, Decorator, HttpClient
from .._context.context import AttemptContext, ClientRequestContext
from .._context.recording import count_earlier
from .._errors import bad_argument, bad_secret
from .._failures.failure import failure_of, judge
from .._policies.conditions import integers_of
from .._request.arguments import check_header_name, is_header_name
from .._request.endpoint import origin_key
from .._request.keys import OwnHosts, is_for_base
from .._text.mask import Mask
from .tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from yarl import URL

    from .._request.request import HttpRequest
    from .tokens import Fetch, Token


_IN_FETCH: Final = ", and waited for a token"


class RefreshingClient(DecoratingClient[HttpClient]):
    """Sends a token with each request, and another one after a 401, once.

    The token is fetched before the first request that needs one, and when a server has
    refused it; once for all requests that need it at the same time, also in several
    sessions that were built with the decorator. Each waits within its own deadline.

    - A request with ``Authorization`` or ``auth=`` of the caller's own gets no token,
      nor does one of a session, or to a URL, that has credentials.
    - Strangers get no token: requests to other servers than the session's own, and
      those that a redirect leads to another origin. Their 401 fetches none.
    - A request whose body cannot be sent twice gets its 401.
    - The fetch may use the same session: its requests go out without a token.

    >>> async def fetch_token():
    ...     return "a token"
    >>> builder = SessionBuilder("https://api.example.com").decorator(
    ...     RefreshingClient.new_decorator(fetch_token)
    ... )
    """

    _serves = "sessions"

    def __init__(
        self,
        delegate: HttpClient,
        tokens: Tokens,
        statuses: frozenset[int],
        header: str,
        scheme: str | None,
        hosts: OwnHosts,
    ) -> None:
        super().__init__(delegate)
        self._tokens = tokens
        self._statuses = statuses
        self._header = header
        self._scheme = scheme
        self._hosts = hosts
        self._needs_origin = not hosts.are_given
        self._is_authorization = header.lower() == "authorization"
        if not self._is_authorization:
            self.mask: Mask | None = Mask([header])

    @classmethod
    def new_decorator(
        cls,
        fetch: Fetch,
        *,
        on: Iterable[int] = (401,),
        header: str = "Authorization",
        scheme: str | None = "Bearer",
        hosts: Iterable[str] | None = None,
    ) -> Decorator:
        """Return a decorator for a session builder.

        Args:
            fetch: An async function without arguments that returns a new token. It runs
                in a task of its own, without the options and the deadline of the call
                that needs it first.
            on: The statuses by which a server refuses a token, each from 400 to 599.
            header: The header that carries it.
            scheme: The word that is put before what *fetch* returns; None where that is
                the whole value of the header.
            hosts: The servers that get it: hosts, with a port or not, or whole origins
                such as ``https://api.example.com:8443``; no subdomains. A bare host
                means ``https``, or the session's own scheme. None: the origin of the
                session's base URL, or its group.

        Returns:
            The decorator. Inside of the retrying client, as usual, each request has a
            log of its own, and no retry is counted for it.

        Raises:
            ValueError: An argument is not as described; or, when the session is built,
                there are no *hosts* and it has neither a base URL nor a group.

        >>> async def fetch_token():
        ...     return "a token"
        >>> decorator = RefreshingClient.new_decorator(
        ...     fetch_token, hosts=["api.example.com", "files.example.com:8443"]
        ... )
        """
        _check_fetch(fetch)
        check_header_name(header)
        if not (scheme is None or is_header_name(scheme)):
            # The token may stand behind the word.
            bad = bad_secret if " " in str(scheme).strip() else bad_argument
            raise bad("scheme", scheme, "a word such as 'Bearer', or None")
        statuses = integers_of("on", on, 400, 599)
        if not statuses:
            raise bad_argument("on", on, "at least one status")
        tokens, own = Tokens(fetch, scheme), OwnHosts(hosts)

        def decorator(delegate: HttpClient) -> HttpClient:
            return cls(delegate, tokens, statuses, header, scheme, own)

        return decorator

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send *request* with a token, and once more where that is refused."""
        call = ctx.call
        if not self._wants_token(call, request):
            return await self.delegate.execute(ctx, request)
        token = self._tokens.known or await self._newest(ctx)
        with_token = self._with(call, request, token)
        response: aiohttp.ClientResponse | None = None
        try:
            response = await self.delegate.execute(ctx, with_token)
        except aiohttp.ClientResponseError as cause:
            # A middleware may raise for the status of an answer.
            if not self._refuses(call, cause):
                raise
            self._tokens.reject(token)
            if is_spent(call, request) or may_differ(call):
                raise
        if response is None:
            return await self._send_again(ctx, request)
        if response.status not in self._statuses or not self._is_answer(call, response):
            return response
        self._tokens.reject(token)
        if is_spent(call, request):
            return response
        if may_differ(call):
            return await self._send_or(response, ctx, request)
        # Its connection may be the one that the fetch needs.
        await discard(response)
        del response
        return await self._send_again(ctx, request)

    async def _send_or(
        self,
        response: aiohttp.ClientResponse,
        ctx: ClientRequestContext,
        request: HttpRequest,
    ) -> aiohttp.ClientResponse:
        """Resend with a new token; return *response* if the body cannot be resent."""
        before, outcome = ctx.record, ctx.record.outcome
        await keep(response)
        try:
            return await self._send_again(ctx, request)
        except SpentBodyError:
            count_earlier(ctx, before, outcome)
            return response

    async def _send_again(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send a request with another token, since the server has refused one."""
        rejected_at = ctx.call.loop.time()
        try:
            token = await self._newest(ctx, rejected_at)
            with_token = self._with(ctx.call, request, token)
            return await self.delegate.execute(ctx, with_token)
        except Exception as cause:
            judge(cause).reached_server = True
            raise

    def _wants_token(self, call: Call, request: HttpRequest) -> bool:
        """Say whether a request goes to an own host, without credentials of its own."""
        if not self._hosts.have(request, call.defaults.base_url):
            return False
        if self._tokens.are_being_fetched_here:
            return False
        if self._header in request.merged_headers(call.default_headers):
            return False
        return not (self._is_authorization and _has_credentials(call, request))

    def _refuses(self, call: Call, cause: aiohttp.ClientResponseError) -> bool:
        """Say whether an answer that was raised has refused the token."""
        if failure_of(cause).status_of_server not in self._statuses:
            return False
        url = getattr(cause.request_info, "url", None)
        return self._is_ours(call, url, cause.history)

    def _is_answer(self, call: Call, response: aiohttp.ClientResponse) -> bool:
        """Say whether one of our servers has answered, which had the token."""
        return self._is_ours(call, url_of(response), history_of(response))

    def _is_ours(
        self, call: Call, url: URL | None, history: Sequence[aiohttp.ClientResponse]
    ) -> bool:
        """Say whether all hops to an answer were to one of our servers."""
        if url is None or not self._hosts.allow(url, call.defaults.base_url):
            return False
        origin = origin_key(url)
        return all(origin_key(each.url) == origin for each in history)

    def _with(self, call: Call, request: HttpRequest, token: Token) -> HttpRequest:
        """Return a request with a token that goes nowhere else."""
        call.own_resources().bind(BoundHeader(self._header, self._hosts))
        scheme = "" if self._scheme is None else f"{self._scheme} "
        return request.with_header(self._header, f"{scheme}{token.text}")

    async def _newest(
        self, ctx: ClientRequestContext, rejected_at: float | None = None
    ) -> Token:
        """Return the newest token, fetched in the time that the request has.

        Raises:
            Exception: There is none in time, or the fetch has failed.
        """
        try:
            token = await self._newest_in_time(ctx)
        except Exception as cause:
            _follow(ctx, rejected_at)
            # The server had no part in it.
            judge(cause).queue = "token"
            record_failure(ctx, cause)
            raise
        except BaseException as cause:
            # Of an attempt the 401 is the last that is known.
            if ctx.attempt is None or rejected_at is None:
                record_failure(ctx, cause)
            raise
        _follow(ctx, rejected_at)
        return token

    async def _newest_in_time(self, ctx: ClientRequestContext) -> Token:
        seconds = ctx.remaining()
        longest = None if seconds == inf else seconds
        token = await unless_closed(ctx.call, lambda: self._tokens.newest(longest))
        if token is None:
            # There is none if the deadline was moved meanwhile.
            passed = TimeLimits.of(ctx).passed(_IN_FETCH) or TimeoutError
            raise passed()
        return token

    def describe(self) -> str:
        """Return the name and the settings of this client."""
        hosts = "" if self._hosts.shown is None else f", hosts={self._hosts.shown!r}"
        return (
            f"{type(self).__name__}(fetch={self._tokens.name},"
            f" on={sorted(self._statuses)!r}, header={self._header!r},"
            f" scheme={self._scheme!r}{hosts})"
        )


def _follow(ctx: ClientRequestContext, rejected_at: float | None) -> None:
    """Begin a new log record for the resent request, inside an attempt."""
    if rejected_at is not None and isinstance(ctx, AttemptContext):
        waited = ctx.call.loop.time() - rejected_at
        ctx.record = follow_rejected(ctx.call, ctx.record, waited)
        # A race that was over before the refusal has no part in it.
        ctx.record.is_raced = ctx.is_raced


def _check_fetch(fetch: object) -> None:
    """Refuse a *fetch* that cannot be called without arguments."""
    if inspect.iscoroutine(fetch):
        fetch.close()  # it will not run, and need not warn of that too
    is_meant = callable(fetch)
    try:
        if callable(fetch):
            inspect.signature(fetch).bind()
    except TypeError:
        is_meant = False
    except ValueError:
        # Some that are written in C do not tell.
        pass
    if not is_meant:
        # The token itself may stand in the place of the function.
        bad = bad_argument if callable(fetch) else bad_secret
        raise bad("fetch", fetch, "an async function without arguments")


def _has_credentials(call: Call, request: HttpRequest) -> bool:
    """Say whether aiohttp sends credentials, which it refuses beside the header."""
    if request.arguments.get("auth") is not None or request.url.raw_user is not None:
        return True
    base, session = call.defaults.base_url, call.session
    if session is None or session.auth is None:
        return False
    # Those of a session go to its own origin alone, if it has one.
    return base is None or is_for_base(request, base)
