"""Send a token with each request; fetch one once for all who need it."""

from __future__ import annotations

import asyncio
import inspect
from contextvars import Context, ContextVar
from math import inf
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import WeakKeyDictionary

import aiohttp

from .._bodies.replayable_payload import SpentBodyError
from .._bodies.request_body import is_spent, may_be_refused
from .._bodies.response_content import discard, keep
from .._call.call import BoundHeader
from .._call.outcome import history_of, url_of
from .._call.recorder import follow_rejected, record_failure
from .._call.time_limits import TimeLimits
from .._context.client import DecoratingClient, HttpClient
from .._context.context import AttemptContext
from .._context.holdings import FetchHoldings
from .._context.recording import count_earlier
from .._errors import UnprocessedRequestError, bad_argument, bad_secret
from .._failures.failure import failure_of, judge
from .._failures.frames import without_frames
from .._masking.mask import Mask
from .._policies.conditions import integers_of
from .._request.arguments import check_header_name, is_header_name, is_header_value
from .._request.endpoint import origin_key
from .._request.own_hosts import OwnHosts, is_for_base
from .._text import name_without_arguments

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from types import TracebackType

    from yarl import URL

    from .._call.call import Call
    from .._context.client import Decorator
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest

    Fetch: TypeAlias = Callable[[], Awaitable[str]]


_fetching: ContextVar[tuple[Flight, ...]] = ContextVar(
    "aioretry_smithy_fetching", default=()
)
"""The fetches that the code is part of; a task that outlives one is part no longer."""


class Token:
    """A fetched token, compared by identity: two tokens may have the same text."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text: str = text


class Flight:
    """A fetch of a token that several calls may wait for."""

    __slots__ = (
        "holdings",
        "is_over",
        "task",
        "tokens",
        "traceback",
        "waiting",
        "was_failure_given",
    )

    task: Task[Token]
    """The task that fetches."""

    holdings: FetchHoldings
    """The holdings of the waiting calls."""

    is_over: bool
    """Whether the fetch is over, though tasks that it began may go on."""

    tokens: Tokens
    """The cache of the fetched token."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.is_over = False
        self.holdings = FetchHoldings()
        self.was_failure_given: bool = False
        self.traceback: TracebackType | None = None
        self.waiting: int = 0

    async def landed(self, seconds: float | None) -> Token | None:
        """Wait up to *seconds* for the token; None at the timeout.

        The last one to give up ends the fetch.

        Raises:
            Exception: What the fetch has raised, another object for each who waits.
        """
        task, failure = self.task, None
        self.waiting += 1
        holder = self.holdings.join()
        try:
            await asyncio.wait([task], timeout=seconds)
            if not task.done():
                return None
            if task.cancelled():
                message = "the fetch of the token was cancelled"
                raise UnprocessedRequestError(message)
            failure = task.exception()
            if failure is None:
                return task.result()
            raise self._own(failure)
        finally:
            self.waiting -= 1
            self.holdings.leave(holder)
            if not self.waiting:
                self._end()
            # The traceback of what is raised has this frame: no cycle.
            del task, failure

    def _end(self) -> None:
        """Cancel a fetch that no call waits for."""
        self.tokens.forget(self)
        self.task.cancel()
        # The frames of the failure have this object.
        self.traceback = None
        del self.task

    def _own(self, failure: BaseException) -> BaseException:
        """Return the failure for the first waiting call, and copies for other calls.

        A call notes on its failure what became of it.
        """
        if self.was_failure_given:
            return without_frames(failure).with_traceback(self.traceback)
        # Before it gets the frames of those who raise it.
        self.was_failure_given, self.traceback = True, failure.__traceback__
        return failure


class _InLoop:
    """The newest token, and the fetch under way, of one event loop."""

    __slots__ = ("flight", "token")

    def __init__(self) -> None:
        self.token: Token | None = None
        self.flight: Flight | None = None


class Tokens:
    """Has the newest token of each event loop, and fetches one where there is none.

    Args:
        fetch: The user's function.
    """

    __slots__ = ("__weakref__", "_fetch", "_in_loops")

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        # A task, and so a fetch, belongs to one loop.
        self._in_loops: WeakKeyDictionary[AbstractEventLoop, _InLoop]
        self._in_loops = WeakKeyDictionary()

    @property
    def name(self) -> str:
        """The user's function by its name, for descriptions and errors."""
        return name_without_arguments(self._fetch)

    @property
    def known(self) -> Token | None:
        """The newest token; None where one has to be fetched."""
        return self._here().token

    @property
    def are_being_fetched_here(self) -> bool:
        """Whether the running code is part of a fetch, which must not wait for it."""
        return any(each.tokens is self and not each.is_over for each in _fetching.get())

    async def newest(self, seconds: float | None) -> Token | None:
        """Return the newest token, fetched within *seconds* if missing.

        None where that is not done by then.

        Raises:
            Exception: The fetch has failed.
        """
        here = self._here()
        if here.token is not None:
            return here.token
        flight = here.flight
        if flight is None:
            flight = here.flight = Flight(self)
            self._take_off(flight)
        return await flight.landed(seconds)

    def reject(self, token: Token) -> None:
        """Note that a server refuses a token; a newer one stays."""
        here = self._here()
        if here.token is token:
            here.token = None

    def forget(self, flight: Flight) -> None:
        """Let the next one who needs a token begin anew."""
        here = self._here()
        if here.flight is flight:
            here.flight = None

    def _here(self) -> _InLoop:
        loop = asyncio.get_running_loop()
        here = self._in_loops.get(loop)
        if here is None:
            here = self._in_loops[loop] = _InLoop()
        return here

    def _take_off(self, flight: Flight) -> None:
        """Begin to fetch, for whoever waits.

        In a task without the options, the deadline and the other context variables of
        the first caller: it is for all of them.
        """
        context, around = Context(), _fetching.get()
        context.run(_fetching.set, (*around, flight))
        flight.holdings.enter_in(context)
        # It may begin, and even end, before this returns.
        task = asyncio.get_running_loop().create_task(
            self._fetched(flight), context=context
        )
        task.add_done_callback(_look_at)
        flight.task = task

    async def _fetched(self, flight: Flight) -> Token:
        try:
            token = Token(await self._text())
        finally:
            here, flight.is_over = self._here(), True
            is_wanted = here.flight is flight
            self.forget(flight)
        if is_wanted:
            here.token = token
        return token

    async def _text(self) -> str:
        fetching = self._fetch()
        if not inspect.isawaitable(fetching):
            raise self._wrong(fetching, "an async function")
        text = await fetching
        if not is_header_value(text):
            raise self._wrong(text, "a text that a header may carry, without line ends")
        return text

    def _wrong(self, returned: object, expected: str) -> TypeError:
        """Make the error for what is no token; it does not show what may be secret."""
        what = "a text" if isinstance(returned, str) else type(returned).__name__
        if returned == "":
            what = "an empty text"
        error = TypeError(f"fetch: {self.name} gave {what} (expected: {expected})")
        # No retry would mend it.
        judge(error).raised_by_caller = True
        return error


def _look_at(task: Task[Token]) -> None:
    """Look at the failure of a task, lest asyncio says that nobody has."""
    if not task.cancelled():
        task.exception()


_IN_FETCH: Final = ", and waited for a token"


class RefreshingClient(DecoratingClient[HttpClient]):
    """Sends a token with each request, and another one after a 401, once.

    The token is fetched before the first request that needs one, and when a server has
    refused it; once for all requests that need it at the same time, also in several
    sessions that were built with the decorator. Each waits within its own deadline.

    - A request with ``Authorization`` or ``auth=`` of the caller's own is left alone,
      as is one of a session, or to a URL, that has credentials.
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
            scheme: The word before it, or None for the bare token.
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
        check_header_name("header", header)
        if not (scheme is None or is_header_name(scheme)):
            # The token may stand behind the word.
            bad = bad_secret if " " in str(scheme).strip() else bad_argument
            raise bad("scheme", scheme, "a word such as 'Bearer', or None")
        statuses = integers_of("on", on, 400, 599)
        if not statuses:
            raise bad_argument("on", on, "at least one status")
        tokens, own = Tokens(fetch), OwnHosts(hosts)

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
            if is_spent(call, request) or may_be_refused(call):
                raise
        if response is None:
            return await self._send_again(ctx, request)
        if response.status not in self._statuses or not self._is_answer(call, response):
            return response
        self._tokens.reject(token)
        if is_spent(call, request):
            return response
        if may_be_refused(call):
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
        call = ctx.call
        token = await self._another(ctx)
        with_token = self._with(call, request, token)
        try:
            return await self.delegate.execute(ctx, with_token)
        except Exception as cause:
            judge(cause).reached_server = True
            raise

    def _wants_token(self, call: Call, request: HttpRequest) -> bool:
        """Say whether a request goes to a server of ours, with nothing of its own."""
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

    async def _another(self, ctx: ClientRequestContext) -> Token:
        """Return a new token, waiting for its fetch."""
        started = ctx.call.loop.time()
        try:
            return await self._newest(ctx, started)
        except Exception as cause:
            judge(cause).reached_server = True
            raise

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
            record_failure(ctx.call, ctx.record, cause)
            raise
        except BaseException as cause:
            # Of an attempt the 401 is the last that is known.
            if ctx.attempt is None or rejected_at is None:
                record_failure(ctx.call, ctx.record, cause)
            raise
        _follow(ctx, rejected_at)
        return token

    async def _newest_in_time(self, ctx: ClientRequestContext) -> Token:
        seconds = ctx.remaining()
        token = await self._tokens.newest(None if seconds == inf else seconds)
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
