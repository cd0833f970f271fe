"""Retry a request, until its strategy or a limit says stop."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Unpack
from uuid import uuid4

from .. import _checks as check
from .._call.outcome import Request, RetryStopReason
from .._call.recorder import record_failure
from .._context.client import ClientT, DecoratingClient, Decorator, HttpClient
from .._context.options import UNSET, Unset
from .._errors import bad_argument, call_it, unqualified
from .call_adapter import HTTP, CallAdapter
from .config import RetryConfig, RetryConfigMapping, in_one_attempt
from .strategy_retries import StrategyRetries
from .token_retries import TokenRetries
from .wait import AT_ONCE, TOO_LATE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import aiohttp

    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest
    from .config import FurtherSettings, Strategy
    from .retries import Retries


class CommonRetryingClient(DecoratingClient[ClientT]):
    """Retries calls of any kind.

    Args:
        delegate: The next client inwards.
        config: The settings of all calls, or a mapping that finds those of each.
    """

    config: RetryConfig | RetryConfigMapping
    """The settings of all calls, or a mapping that finds those of each.

    Other ones may be put here at any time, from any thread: they hold for calls that
    reach this client from then on, in the one session that it is part of. Those inside
    of it keep theirs. Anything else is a :class:`ValueError`, and changes nothing.
    """

    _is_retrying = _sends_again = True

    _adapter: ClassVar[CallAdapter]
    """Handles the requests and the results."""

    @unqualified
    def __init__(
        self, delegate: ClientT, config: RetryConfig | RetryConfigMapping
    ) -> None:
        super().__init__(delegate)
        self.config = config

    def __setattr__(self, name: str, value: object) -> None:
        if name == "config":
            self._check_config(name, value)
        super().__setattr__(name, value)

    @classmethod
    def _check_config(cls, name: str, config: object) -> None:
        """Refuse settings of another kind than its calls can have."""
        if not isinstance(config, RetryConfig | RetryConfigMapping):
            expected = "a RetryConfig or a RetryConfigMapping"
            expected += call_it(config, RetryConfig, RetryConfigMapping)
            raise bad_argument(name, config, expected)

    async def execute(self, ctx: ClientRequestContext, request: Request) -> Any:
        """Send a request again until its strategy or a limit says stop."""
        retries = self._retries_of(ctx, request)
        try:
            decision = retries.begin()
            if decision is not AT_ONCE:
                decision = await decision
            while decision is AT_ONCE:
                attempt = retries.next_attempt()
                try:
                    retries.result = await self._attempt(attempt, attempt.request)
                except Exception as cause:
                    retries.cause = cause
                deciding = retries.decide()
                if attempt.holdings is not None:
                    deciding = attempt.holdings.end_after(deciding)
                decision = await deciding
                if not decision.stops:
                    decision = await retries.wait(decision)
            if retries.owes_refund:
                await retries.refund()
        except BaseException as error:
            if not await retries.break_off(error):
                raise
            decision = TOO_LATE
        return retries.end(decision.reason)

    def _attempt(self, ctx: ClientRequestContext, request: Request) -> Any:
        """Send an attempt on; functions have a time limit around it."""
        return self.delegate.execute(ctx, request)

    def _retries_of(self, ctx: ClientRequestContext, request: Request) -> Retries:
        """Return the retries of a call, by the settings that it has.

        Raises:
            Exception: A mapping has raised it.
        """
        call, options = ctx.call, ctx.options
        config: Any = self.config
        if options is not None and options.retry is not None:
            config = options.retry
        elif not isinstance(config, RetryConfig):
            try:
                config = config.config_for(ctx, request)
            except Exception as cause:
                call.stop_reason = RetryStopReason.ERROR
                record_failure(ctx, cause)
                raise
        if call.defaults.no_retries:
            config = in_one_attempt(config)
        call.retry_config = config
        if config.buffer_response or call.reads_whole_bodies:
            call.reads_whole_bodies = config.buffer_response
        kind = TokenRetries if config.uses_tokens else StrategyRetries
        return kind(ctx, request, config, self._adapter)

    @classmethod
    def _new_decorator(
        cls,
        strategy: Strategy | RetryConfig | RetryConfigMapping,
        max_total_attempts: int | Literal[Unset.UNSET],
        attempt_timeout: float | Literal[Unset.UNSET] | None,
        settings: Mapping[str, Any],
    ) -> Callable[[ClientT], ClientT]:
        """Make a decorator of settings, or of what has all of them."""
        given: dict[str, Any] = {**settings}
        if max_total_attempts is not UNSET:
            given["max_total_attempts"] = max_total_attempts
        if attempt_timeout is not UNSET:
            given["attempt_timeout"] = attempt_timeout
        if not isinstance(strategy, RetryConfig | RetryConfigMapping):
            return cls._decorator(RetryConfig(strategy, **given))
        if given:
            expected = f"none beside a {type(strategy).__name__}"
            raise bad_argument("settings", given, expected)
        return cls._decorator(strategy)

    @classmethod
    def _decorator(
        cls, config: RetryConfig | RetryConfigMapping
    ) -> Callable[[ClientT], ClientT]:
        def decorator(delegate: ClientT) -> Any:
            return cls(delegate, config)

        return decorator

    def describe(self) -> str:
        """Return one line for ``SessionBuilder.describe()``: name and settings."""
        config = self.config
        if not isinstance(config, RetryConfig):
            return f"{type(self).__name__}(mapping={config!r})"
        shown = {
            setting.name: repr(getattr(config, setting.name))
            for setting in fields(config)
            if setting.repr
        }
        if config.listeners:
            shown["listeners"] = repr(config.listeners)
        if config.uses_tokens:
            shown["classifiers"] = f"({', '.join(map(_name, config.classifiers))})"
            shown["raise_retry_error"] = repr(config.raise_retry_error)
            if config.token_scope is not None:
                shown["token_scope"] = _name(config.token_scope)
        settings = ", ".join(f"{name}={value}" for name, value in shown.items())
        return f"{type(self).__name__}({settings})"


class RetryingClient(CommonRetryingClient[HttpClient]):
    """Retries a request while its strategy asks for a further attempt.

    Each attempt gets a context, a log and a timeout of its own. When it stops, the
    caller gets the last response as it is or the last exception as it is; the log of
    the call says why it stopped. After Armeria's ``RetryingClient``.

    Args:
        delegate: The next client inwards.
        config: The settings of all calls, or a mapping that finds those of each.
    """

    _serves = "sessions"
    _counterpart = "RetryingRpcClient"
    _adapter = HTTP

    @classmethod
    def new_decorator(
        cls,
        strategy: Strategy | RetryConfig | RetryConfigMapping,
        max_total_attempts: int | Literal[Unset.UNSET] = UNSET,
        attempt_timeout: float | Literal[Unset.UNSET] | None = UNSET,
        **settings: Unpack[FurtherSettings],
    ) -> Decorator:
        """Make a decorator for a session builder.

        Args:
            strategy: Decides after each attempt; or a whole :class:`RetryConfig`, or a
                :class:`RetryConfigMapping`.
            max_total_attempts: As for :class:`RetryConfig`.
            attempt_timeout: As for :class:`RetryConfig`.
            settings: The other arguments of :class:`RetryConfig`, by name.

        Raises:
            ValueError: An argument is out of range, there is none of that name, or
                there are settings beside a whole configuration or a mapping.

        >>> decorator = RetryingClient.new_decorator(
        ...     RetryStrategy.failsafe(), max_total_attempts=3, attempt_timeout=2.0
        ... )
        >>> decorator = RetryingClient.new_decorator(RetryStrategy.failsafe(), 3, 2.0)
        """
        return cls._new_decorator(
            strategy, max_total_attempts, attempt_timeout, settings
        )

    @classmethod
    def new_mapped_decorator(cls, mapping: RetryConfigMapping) -> Decorator:
        """Make a decorator that retries each call by the settings for its key.

        Args:
            mapping: Finds the settings. It is asked once per call.

        Raises:
            ValueError: *mapping* is no :class:`RetryConfigMapping`.

        >>> decorator = RetryingClient.new_mapped_decorator(
        ...     RetryConfigMapping.per_method(
        ...         lambda method: RetryConfig(
        ...             RetryStrategy.failsafe(),
        ...             max_total_attempts=5 if method == "GET" else 2,
        ...         )
        ...     )
        ... )
        """
        check.kind("mapping", mapping, RetryConfigMapping)
        return cls._decorator(mapping)


def _name(setting: object) -> str:
    name: str = getattr(setting, "__name__", repr(setting))
    return name


_ID: Final = "amz-sdk-invocation-id"
_REQUEST: Final = "amz-sdk-request"
_FOR_EVER: Final = 1e9
"""Seconds; a deadline farther away counts as none."""


def sdk_headers(delegate: HttpClient) -> HttpClient:
    """Tell the server which attempt of which call a request is, as the AWS SDKs do.

    A decorator, for inside the retrying client. Each attempt has two headers:

    ``amz-sdk-invocation-id``
        A UUID, the same for all attempts of a call; the caller's own one stays.
    ``amz-sdk-request``
        ``attempt=2; max=3; ttl=20261122T040000Z``: the number of the attempt, from 1;
        with a retrying client, its limit of attempts; and, with a deadline, the second
        in UTC by which the attempt is over, rounded up.

    The time is from this machine's clock; the server's clock is not considered.

    Args:
        delegate: The next client inwards.

    Source: the SDKs' retry behaviour, and smithy-python.

    >>> builder = (
    ...     SessionBuilder("https://service.example.com")
    ...     .decorator(sdk_headers)
    ...     .decorator(RetryingClient.new_decorator(StandardRetryStrategy()))
    ... )
    """
    return SdkHeadersClient(delegate)


class SdkHeadersClient(DecoratingClient):
    """Adds the headers of :func:`sdk_headers`."""

    _serves = "sessions"

    async def execute(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> aiohttp.ClientResponse:
        """Send the request with the headers."""
        try:
            request = _with_headers(ctx, request)
        except BaseException as cause:
            record_failure(ctx, cause)
            raise
        return await self.delegate.execute(ctx, request)


def _with_headers(ctx: ClientRequestContext, request: HttpRequest) -> HttpRequest:
    attributes, headers = ctx.attributes, request.headers
    if _ID not in attributes:
        attributes[_ID] = str(uuid4())
    headers.setdefault(_ID, attributes[_ID])
    headers[_REQUEST] = _request_header(ctx)
    return request.replace(headers=headers)


def _request_header(ctx: ClientRequestContext) -> str:
    call, attempt, most = ctx.call, ctx.attempt or 1, None
    parts, config = [f"attempt={attempt}"], call.retry_config
    if config is not None:
        most = config.max_total_attempts
        own = getattr(config.strategy, "max_attempts", most)
        most = min(own, most) if isinstance(own, int) else most
    # A decorator outside may call again, and count beyond the limit.
    if most is not None and most >= attempt:
        parts.append(f"max={most}")
    deadline = ctx.deadline
    if deadline is not None and deadline - call.started < _FOR_EVER:
        ends = datetime.fromtimestamp(call.wall_clock, UTC)
        ends += timedelta(seconds=deadline - call.started)
        # A server that honours a second rounded down would give up too early.
        ends += timedelta(seconds=1, microseconds=-1)
        parts.append(f"ttl={ends:%Y%m%dT%H%M%SZ}")
    return "; ".join(parts)
