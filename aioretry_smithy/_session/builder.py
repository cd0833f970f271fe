"""Build a session with decorators, or decorate one; change settings for some calls."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NoReturn,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
)

import aiohttp
from aiohttp import ClientSession, ClientTimeout

from .. import _checks as check
from .._context.chain import (
    assemble,
    chain_of,
    check_attempt_timeout,
    check_origin,
    checked_decorator,
    describe_client,
    find_client,
    sends_again,
)
from .._context.options import UNSET, OptionsBlock, RequestOptions, Unset
from .._endpoints.client import LoadBalancingClient
from .._endpoints.group import EndpointGroup, listen
from .._errors import NAMES_ELSEWHERE, bad_argument, call_it, nearest
from .._request.endpoint import Endpoint, check_scheme, endpoint_of
from .._retry.config import RetryConfig, RetryListener, Strategy
from .._text.mask import DEFAULT_MASK
from . import install as installing
from .aiohttp_transport import AiohttpTransport
from .deadline import keep_session_limit, limit_of, means_no_limit, with_total
from .standard import STANDARD_SETTINGS, Retrying, check_settings, standard_decorators

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from contextlib import AbstractContextManager

    from aiohttp.abc import AbstractCookieJar
    from aiohttp.typedefs import JSONEncoder, LooseCookies, LooseHeaders, StrOrURL

    from .._context.client import Decorator
    from .._request.arguments import Arguments
    from .._retry.limiter import RetryLimiter
    from .standard import ChainMetrics, StandardSettings
    from .standard_limits import Concurrency, Rate


STANDARD = {"response_timeout", *STANDARD_SETTINGS}
"""The arguments of the standard chain besides those of a session."""


class SessionArguments(TypedDict, total=False):
    """The arguments of :class:`aiohttp.ClientSession`, for type checkers alone.

    Those of the newest aiohttp that is tested; :func:`check_arguments` goes by the one
    that is installed.
    """

    connector: aiohttp.BaseConnector | None
    loop: AbstractEventLoop | None
    cookies: LooseCookies | None
    headers: LooseHeaders | None
    proxy: StrOrURL | None
    proxy_auth: aiohttp.BasicAuth | None
    skip_auto_headers: Iterable[str] | None
    auth: aiohttp.BasicAuth | None
    json_serialize: JSONEncoder
    json_serialize_bytes: Callable[[Any], bytes] | None
    request_class: type[aiohttp.ClientRequest]
    response_class: type[aiohttp.ClientResponse]
    ws_response_class: type[aiohttp.ClientWebSocketResponse]
    version: aiohttp.HttpVersion
    cookie_jar: AbstractCookieJar | None
    connector_owner: bool
    raise_for_status: bool | Callable[[aiohttp.ClientResponse], Awaitable[None]]
    read_timeout: float | None
    conn_timeout: float | None
    timeout: aiohttp.ClientTimeout
    auto_decompress: bool
    trust_env: bool
    requote_redirect_url: bool
    trace_configs: list[aiohttp.TraceConfig] | None
    read_bufsize: int
    max_line_size: int
    max_field_size: int
    max_headers: int
    fallback_charset_resolver: Callable[[aiohttp.ClientResponse, bytes], str]
    middlewares: Sequence[aiohttp.ClientMiddlewareType]
    ssl_shutdown_timeout: float | None


def new_session(base_url: StrOrURL | None, arguments: Arguments) -> ClientSession:
    """Make a session.

    Raises:
        RuntimeError: No event loop is running.
    """
    try:
        return ClientSession(base_url, **arguments)
    except RuntimeError as error:
        # Not asked before: aiohttp needs none if the connector has one.
        if str(error) != "no running event loop":
            raise
        message = (
            "build() needs a running event loop, as aiohttp.ClientSession does: write"
            " 'async with builder.build() as session:' in a coroutine, and run that"
            " with asyncio.run()"
        )
        raise RuntimeError(message) from error


def check_arguments(given: Mapping[str, object], *, standard: bool = False) -> None:
    """Refuse unknown arguments of a session, and suggest the nearest name.

    Of a *standard* chain, its own arguments are known, too. A number of seconds is no
    timeout of a session.
    """
    if not given:
        return
    _check_names(given, standard=standard)
    if isinstance(timeout := given.get("timeout"), int | float):
        expected = (
            "an aiohttp.ClientTimeout; response_timeout takes the seconds of a call,"
            " and attempt_timeout those of an attempt"
        )
        raise bad_argument("timeout", timeout, expected)


def _check_names(given: Collection[str], *, standard: bool) -> None:
    parameters = inspect.signature(ClientSession).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        # A tracer has replaced the class by a function that takes any name.
        return
    known = {each.name for each in parameters}
    expected = "an argument of aiohttp.ClientSession"
    if standard:
        known |= STANDARD
        expected += " or of SessionBuilder.standard()"
    for name in given:
        if name in known:
            continue
        if name in STANDARD:
            expected += "; SessionBuilder.standard() has one of that name"
        elif not standard and name in NAMES_ELSEWHERE:
            expected += f"; SessionBuilder.standard() has {NAMES_ELSEWHERE[name]!r}"
        else:
            expected += nearest(name, known)
        # Without the value, which may be a secret.
        raise bad_argument("argument", name, expected)


_C = TypeVar("_C")


class SessionBuilder:
    """Builds an :class:`aiohttp.ClientSession` with a chain of decorators.

    The last decorator added is the outermost: the first to see a request and the last
    to see its response. A builder may build several sessions; they share the state of
    the decorators, such as circuit breakers. After Armeria's ``ClientBuilder``.

    Args:
        base_url: The base for relative URLs; or an :class:`EndpointGroup`, between
            whose endpoints requests are balanced.
        client_session_arguments: Any other argument of :class:`aiohttp.ClientSession`.

    Raises:
        ValueError: There is no such argument, ``timeout`` is a number, or the base URL
            has no scheme.

    >>> builder = (
    ...     SessionBuilder("https://api.example.com")
    ...     .decorator(LoggingClient.new_decorator())
    ...     .decorator(RetryingClient.new_decorator(RetryStrategy.failsafe()))
    ...     .response_timeout(10.0)
    ... )

    Then, in a coroutine, ``async with builder.build() as session:``.
    """

    def __init__(
        self,
        base_url: StrOrURL | EndpointGroup | None = None,
        **client_session_arguments: Unpack[SessionArguments],
    ) -> None:
        check_arguments(client_session_arguments)
        if base_url is not None and not isinstance(base_url, EndpointGroup):
            check_scheme("base_url", base_url)
        self._group = base_url if isinstance(base_url, EndpointGroup) else None
        self._base_url = None if isinstance(base_url, EndpointGroup) else base_url
        self._arguments: dict[str, Any] = {**client_session_arguments}
        self._decorators: list[Decorator] = []
        self._keeps_limit = self._times_connections = False

    @classmethod
    def standard(
        cls,
        base_url: StrOrURL | EndpointGroup | None = None,
        *,
        response_timeout: float | Literal[Unset.UNSET] | None = UNSET,
        attempt_timeout: float | Literal[Unset.UNSET] | None = UNSET,
        max_total_attempts: int | Literal[Unset.UNSET] = UNSET,
        strategy: Strategy | Literal[Unset.UNSET] = UNSET,
        limiter: RetryLimiter | Literal[Unset.UNSET] | None = UNSET,
        listeners: Iterable[RetryListener] | Literal[Unset.UNSET] = UNSET,
        logging: Decorator | Literal[Unset.UNSET] | None = UNSET,
        retrying: Retrying | Literal[Unset.UNSET] | None = UNSET,
        circuit_breaker: Decorator | Literal[Unset.UNSET] | None = UNSET,
        wait_for_ready: float | Literal[Unset.UNSET] | None = UNSET,
        concurrency: Concurrency | None = None,
        rate: Rate | None = None,
        metrics: ChainMetrics | None = None,
        enforce: bool = True,
        inside: Iterable[Decorator] = (),
        **client_session_arguments: Unpack[SessionArguments],
    ) -> Self:
        """Start with the chain that is right for most services.

        From the outside in: logging of failed calls; up to 6 attempts of requests that
        may be sent again, 0.2 s, 0.4 s, ... apart, or as long as the server asks for,
        with a budget per host that prevents retry storms; a circuit breaker per host,
        except for the endpoints of a group, which leaves those alone that fail. While a
        server is away, requests wait at its circuit, and one at a time tries it.
        Sessions of one builder share budgets, circuit breakers and limits; give two
        builders the same objects to share them.

        Args:
            base_url: The base for relative URLs, or an :class:`EndpointGroup`.
            response_timeout: Seconds that a call may take, with all its attempts, > 0;
                None for no limit. Unless given: the ``total`` of ``timeout=``, where 0
                and less mean no limit, or 30.0.
            attempt_timeout: Seconds that one attempt may take, > 0, or None. Unless
                given: 10.0, or as long as the call where that has less.
            max_total_attempts: Attempts of one call, the first one included; 6 unless
                given.
            strategy: Decides about retries; :meth:`RetryStrategy.failsafe` unless
                given.
            limiter: Limits the retries of all calls, or None;
                ``RetryBudget.per_host(unserved_cost=0.1)`` unless given.
            listeners: :class:`RetryListener` objects, notified before each retry.
            logging: A decorator to log with, or None to leave it out. Unless given: a
                :class:`LoggingClient` that writes a :meth:`LogFormatter.line`.
            retrying: A :class:`RetryConfig`, a :class:`RetryConfigMapping` or a
                decorator to retry with, or None to leave it out. It replaces the five
                settings above, which are then arguments of
                :meth:`RetryConfig.standard`.
            circuit_breaker: A decorator to break circuits with, or None to leave it
                out. Unless given: one per host, which opens after five failures in a
                row, for 0.1 s at first, then for longer and longer, up to 5 s.
            wait_for_ready: Seconds, finite and > 0, that a call waits at that circuit
                for the server to be back, over all its attempts, unless the last
                failure was slow: then the server is busy. None: it fails at once. 5.0
                unless given.
            concurrency: Limits the requests in flight; None for no limit. An int >= 1
                for each host; a :class:`ConcurrencyLimit` for all hosts; a function
                that makes the limit of a host, an int or a :class:`ConcurrencyLimit`;
                or ``"aimd"`` for a :meth:`ConcurrencyLimit.aimd` per host that begins
                at 4. Answers are slow after half of the attempt timeout, and an
                attempt waits a quarter of it for a place. Where calls have less time
                than an attempt, that counts.
            rate: Limits the rate of requests; None for no limit. A number > 0 of
                requests a second for each host; a :class:`RateLimit` for all hosts, or
                a list of them; or a function that makes the limit, or the list, of a
                host.
            metrics: A :class:`~aioretry_smithy.prometheus.PrometheusMetrics` or an
                :class:`~aioretry_smithy.opentelemetry.OpenTelemetryMetrics`, which
                counts calls, attempts, and what happens to the circuit breakers,
                budgets and concurrency limits that are made here, and to the
                :class:`EndpointGroup`.
            enforce: False: the circuit breakers and limits that are made here decide,
                count and log, but refuse no request and let none wait.
            inside: Decorators between these parts and aiohttp, from the
                innermost, such as one that signs each attempt, or a second
                :class:`LoggingClient`, which logs each attempt.
            client_session_arguments: Any other argument of
                :class:`aiohttp.ClientSession`.

        Raises:
            ValueError: An argument is not as described.

        >>> builder = SessionBuilder.standard("https://api.example.com")
        """
        check_arguments(client_session_arguments, standard=True)
        builder = cls(base_url, **client_session_arguments)
        if response_timeout is UNSET:
            total = getattr(client_session_arguments.get("timeout"), "total", None)
            response_timeout = 30.0 if total is None else total
            if means_no_limit(total):
                response_timeout = None
        else:
            check.positive("response_timeout", response_timeout, or_none=True)
        builder.response_timeout(response_timeout)
        settings: StandardSettings = {
            "attempt_timeout": attempt_timeout,
            "max_total_attempts": max_total_attempts,
            "strategy": strategy,
            "limiter": limiter,
            "listeners": listeners,
            "logging": logging,
            "retrying": retrying,
            "circuit_breaker": circuit_breaker,
            "wait_for_ready": wait_for_ready,
            "concurrency": concurrency,
            "rate": rate,
            "metrics": metrics,
            "enforce": enforce,
            "inside": inside,
        }
        for decorator in standard_decorators(
            settings,
            response_timeout=response_timeout,
            has_group=isinstance(base_url, EndpointGroup),
        ):
            builder.decorator(decorator)
        if metrics is not None and builder._group is not None:
            listen(builder._group, metrics.endpoint_groups)
        return builder

    def decorator(self, decorator: Decorator) -> Self:
        """Add a decorator around those added before.

        Args:
            decorator: The result of a ``new_decorator()``, a class derived from
                :class:`DecoratingClient`, or a function decorated with
                :func:`client_decorator`.

        Raises:
            ValueError: *decorator* cannot be called with a client, or is a coroutine
                function without :func:`client_decorator`.
        """
        self._decorators.append(checked_decorator(decorator))
        return self

    def response_timeout(self, seconds: float | None) -> Self:
        """Limit the time of a whole call, to the end of its body.

        This sets the session's ``ClientTimeout.total``, exact to the millisecond; its
        other limits stay as they are. A request's ``timeout=`` with a ``total``
        replaces it, and None or a ``total`` of 0 lifts it. A ``ClientTimeout`` without
        a ``total`` does not change it.

        Args:
            seconds: The limit, finite and > 0; None for no limit.

        Raises:
            ValueError: *seconds* is out of range.
        """
        check.positive("seconds", seconds, or_none=True)
        timeout = self._arguments.get("timeout", aiohttp.client.DEFAULT_TIMEOUT)
        if not isinstance(timeout, ClientTimeout):
            raise bad_argument("timeout", timeout, "an aiohttp.ClientTimeout")
        self._arguments["timeout"] = with_total(timeout, seconds)
        self._keeps_limit = True
        return self

    def connection_timings(self) -> Self:
        """Let logs say how long each attempt waited for a connection.

        Then ``log.connection`` has the seconds in the queue of the session's own pool,
        for the name of the host and to connect: :class:`ConnectionTimings`. A trace
        configuration of aiohttp measures them, with which a request takes up to a fifth
        more processor time; so this is off by default.

        >>> builder = SessionBuilder("https://api.example.com").connection_timings()
        """
        self._times_connections = True
        return self

    def describe(self) -> str:
        """Return the chain from the outside in, a line each, with its settings.

        >>> print(
        ...     SessionBuilder("https://api.example.com")
        ...     .decorator(DecoratingClient)
        ...     .response_timeout(10.0)
        ...     .describe()
        ... )
        DecoratingClient
          aiohttp.ClientSession(base_url='https://api.example.com', ...)
        """
        total = self._total()
        base_url = DEFAULT_MASK.text(str(self._base_url))
        where = "" if self._base_url is None else f"base_url={base_url!r}, "
        timings = ", connection_timings=True" if self._times_connections else ""
        session = f"aiohttp.ClientSession({where}response_timeout={total}{timings})"
        clients = chain_of(assemble(AiohttpTransport(), self._placed(), "sessions"))
        if isinstance(clients[-1], AiohttpTransport):
            clients.pop()
        lines = [*map(describe_client, clients), session]
        return "\n".join(f"{'  ' * depth}{line}" for depth, line in enumerate(lines))

    def build(self) -> ClientSession:
        """Make a session. Needs a running event loop, as aiohttp does.

        Raises:
            ValueError: There are two retrying clients in the chain, an attempt may take
                longer than the call, a decorator returns no client, or it hides
                others: its client has no ``.delegate``.
            RuntimeError: No event loop is running.
        """
        transport, arguments = AiohttpTransport(), self._arguments
        if self._times_connections:
            # Most programs time none.
            from .timed_connections import TimedTransport, with_timings  # noqa: PLC0415

            transport, arguments = TimedTransport(), with_timings(arguments)
        client = assemble(transport, self._placed(), "sessions")
        check_attempt_timeout(client, self._total)
        group = self._group
        base_url = self._base_url if group is None else group.placeholder
        check_origin(client, base_url or installing.service_of(client))
        session = new_session(base_url, arguments)
        if self._keeps_limit:
            keep_session_limit(session)
        return installing.install(session, transport, client)

    if not TYPE_CHECKING:
        # Type checkers see what is missing themselves.

        async def __aenter__(self) -> NoReturn:
            message = "a builder is no session: async with builder.build() as session"
            raise TypeError(message)

        async def __aexit__(self, *raised: object) -> None:
            """Never called: a builder cannot be entered."""

        def __getattr__(self, name: str) -> NoReturn:
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name in STANDARD:
                message += f"; SessionBuilder.standard({name}=...) has it"
            if name == "attempt_timeout":
                message += (
                    ", and RetryingClient.new_decorator(..., attempt_timeout=...)"
                )
            raise AttributeError(message, name=name, obj=self)

    def _placed(self) -> list[Decorator]:
        """Return the decorators, with the one that balances between a group's servers.

        It is directly inside the innermost one that sends again, else the outermost;
        unless it was added by hand.
        """
        decorators, group = [*self._decorators], self._group
        if group is None:
            return decorators
        end = AiohttpTransport()
        links = [chain_of(decorator(end)) for decorator in decorators]
        if not any(_balances(link, group) for each in links for link in each):
            sending = (any(map(sends_again, each)) for each in links)
            again = (place for place, sends in enumerate(sending) if sends)
            place = next(again, len(decorators))
            decorators.insert(place, LoadBalancingClient.new_decorator(group))
        return decorators

    def _total(self) -> float | None:
        timeout = self._arguments.get("timeout", aiohttp.client.DEFAULT_TIMEOUT)
        return limit_of(getattr(timeout, "total", timeout))


def _balances(client: object, group: EndpointGroup) -> bool:
    """Say whether a client balances between the endpoints of a group."""
    return isinstance(client, LoadBalancingClient) and client.group is group


def decorate(session: ClientSession, *decorators: Decorator) -> ClientSession:
    """Put decorators on an existing session, in place.

    Args:
        session: Any session; its calls go through the chain from now on.
        decorators: The decorators, from the innermost to the outermost.

    Returns:
        The same session.

    Raises:
        ValueError: The session has decorators already, there are two retrying clients,
            an attempt may take longer than the call, a decorator returns no client, or
            it hides others: its client has no ``.delegate``.
    """
    if installing.installed(_checked(session)) is not None:
        expected = "not decorated yet; undecorate() takes decorators off"
        raise bad_argument("session", session, expected)
    transport = AiohttpTransport()
    client = assemble(transport, decorators, "sessions")
    check_attempt_timeout(client, lambda: limit_of(session.timeout.total))
    check_origin(client, session._base_url or installing.service_of(client))
    return installing.install(session, transport, client)


def decorate_standard(
    session: ClientSession, **settings: Unpack[StandardSettings]
) -> ClientSession:
    """Put the standard chain on an existing session, in place.

    It is that of :meth:`SessionBuilder.standard`, for a session that a library has
    built. The time of a call stays that of the session: the ``total`` of its
    ``ClientTimeout``, which is 300 s unless it was set. Two sessions share budgets,
    circuit breakers and limits only where both are given the same objects.

    Args:
        session: Any session; its calls go through the chain from now on.
        settings: Those of :meth:`SessionBuilder.standard`, but for the base URL,
            ``response_timeout`` and what makes a session.

    Returns:
        The same session.

    Raises:
        ValueError: There is no such setting, one is not as described, the session has
            decorators already, or an attempt may take longer than the call.

    >>> async def fetch(session):
    ...     decorate_standard(session, max_total_attempts=3)
    ...     async with session.get("https://api.example.com/orders") as response:
    ...         return await response.json()
    """
    check_settings(settings)
    total = limit_of(_checked(session).timeout.total)
    return decorate(session, *standard_decorators(settings, response_timeout=total))


def undecorate(session: ClientSession) -> ClientSession:
    """Remove the decorators from a session; a plain session is unchanged.

    Calls that are under way end as they began.

    Returns:
        The same session.
    """
    installing.remove(_checked(session))
    return session


def unwrap(session: ClientSession, client: type[_C]) -> _C | None:
    """Return the outermost client of a class in a session's chain, or None.

    Args:
        session: A session, decorated or not.
        client: A class of clients, such as :class:`RetryingClient`.

    Raises:
        ValueError: An argument is something else, such as a decorator.
    """
    if not isinstance(client, type):
        expected = "a class of clients, such as RetryingClient"
        raise bad_argument("client", client, expected)
    outermost = installing.installed(_checked(session))
    return None if outermost is None else find_client(outermost, client)


def _checked(session: object) -> ClientSession:
    if isinstance(session, ClientSession) and issubclass(type(session), ClientSession):
        return session
    expected = "an aiohttp.ClientSession"
    if isinstance(session, ClientSession):
        expected += f", not a {type(session).__name__} that looks like one"
    raise bad_argument("session", session, expected)


def request_options(
    *,
    retry: RetryConfig | None = None,
    response_timeout: float | Literal[Unset.UNSET] | None = UNSET,
    idempotent: bool | None = None,
    attributes: Mapping[Any, Any] | None = None,
    endpoint: StrOrURL | Endpoint | None = None,
) -> AbstractContextManager[None]:
    """Change settings for the calls in a block.

    The settings hold for calls in tasks that are started in the block, but not in other
    tasks. Blocks can be nested: the inner one wins for each argument that it has. One
    object may be entered several times, also by several tasks or threads at once.

    Args:
        retry: The settings that replace those of the retrying client: None keeps them,
            :meth:`RetryConfig.no_retry` retries nothing. Without a retrying client a
            session does not retry.
        response_timeout: Seconds that a call may take, finite and > 0; None for no
            limit. It has precedence over the ``timeout=`` of a request.
        idempotent: Whether the server may see a request twice, with any method:
            for :meth:`RetryStrategy.failsafe`, for :func:`smithy.only_idempotent`, and
            for a :class:`HedgingClient`, which sends it once more while it is late.
        attributes: Added to ``ctx.attributes`` of each call.
        endpoint: One endpoint of an :class:`EndpointGroup`, or its URL; one behind a
            name may be named by its address, such as ``http://10.0.0.3:8080``. The
            calls of sessions with a group go to it, retries too, though it may be out;
            a call of one whose group does not have it is a ValueError, and one that has
            left since an :class:`EndpointGroupError`. Other sessions ignore it.

    Raises:
        ValueError: An argument is not as described.

    >>> with request_options(retry=RetryConfig.no_retry(), response_timeout=2.0):
    ...     pass  # for example: await session.get("/health")
    """
    if retry is not None and not isinstance(retry, RetryConfig):
        off = "; RetryConfig.no_retry() for no retries" if retry is False else ""
        expected = f"a RetryConfig or None{off}{call_it(retry, RetryConfig)}"
        raise bad_argument("retry", retry, expected)
    if response_timeout is not UNSET:
        check.positive("response_timeout", response_timeout, or_none=True)
    if idempotent is not None and not isinstance(idempotent, bool):
        raise bad_argument("idempotent", idempotent, "True, False or None")
    if not (attributes is None or isinstance(attributes, Mapping)):
        raise bad_argument("attributes", attributes, "a mapping or None")
    given = dict(attributes or {})
    pin = None if endpoint is None else endpoint_of("endpoint", endpoint)
    return OptionsBlock(RequestOptions(retry, response_timeout, idempotent, given, pin))
