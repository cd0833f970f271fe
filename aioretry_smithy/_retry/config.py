"""Check the settings of a retrying client, and choose them for each call."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias, TypedDict, Unpack

from .. import _checks as check
from .._errors import (
    bad_argument,
    call_it,
    check_unit,
    is_plain_function,
    positive_integer,
    refuses_unknown_names,
)
from .._policies.backoff import Backoff
from .._policies.conditions import members_of
from .._policies.listeners import checked
from .._request.arguments import is_header_name
from .._request.keys import host_and_method_key, host_key, method_key
from .._text.printable import name_of
from .._values import BoundedMap, extensible
from ..smithy.interfaces import METHODS, TokenSource, is_smithy_strategy
from .budget import PerHostRetryBudget, RetryBudget, RetryBudgetListener
from .classify import DEFAULT_CLASSIFIERS, Classifier
from .limiter import RetryLimiter
from .smithy_strategies import TokenScope, holds_up_the_loop, names_scope
from .strategy import AnyStrategy, RetryStrategy, RetryStrategyWithContent

if TYPE_CHECKING:
    from .._call.call import Call
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest


class RetryListener:
    """Receives each retry before the wait for it; override the method.

    What it raises is logged and changes nothing. It has no say in the retry, but may
    prepare it: what it puts into ``ctx.attributes`` is there for decorators inside the
    retrying client. Give it to ``listeners=`` of a retrying client.

    It does not hear of what is no retry of that client: hedges, requests that are sent
    again on another connection, resumed downloads and refreshed tokens.

    >>> class Diary(RetryListener):
    ...     def on_retry(self, ctx, cause, delay):
    ...         print(f"attempt {ctx.attempt} failed, {delay} s to the next one")
    >>> decorator = RetryingClient.new_decorator(
    ...     RetryStrategy.failsafe(), listeners=[Diary()]
    ... )
    """

    def on_retry(
        self, ctx: ClientRequestContext, cause: Exception | None, delay: float
    ) -> Awaitable[None] | None:
        """Called when a retry is decided and paid for, before the wait; may be async.

        The response of the attempt is released by now. The wait goes on meanwhile: what
        this takes is part of it, and longer if this takes longer. If the deadline of
        the call passes, the retry is not made.

        Args:
            ctx: The attempt that failed; ``ctx.log`` has the status and the headers of
                its response.
            cause: The exception of the attempt, or None when there was a response.
            delay: Seconds from the end of the attempt to the next one.
        """
        return None


Strategy: TypeAlias = RetryStrategy | RetryStrategyWithContent | TokenSource
"""A strategy of any kind."""

RETRY_COUNT_HEADER: Final = "armeria-retry-count"
"""The default name of the header for the number of earlier attempts."""

_ENVIRONMENT_VARIABLE = "AIORETRY_SMITHY_DEFAULT_MAX_TOTAL_ATTEMPTS"


class SharedSettings(TypedDict, total=False):
    """The named arguments of :class:`RetryConfig` that concern calls of any kind."""

    limiter: RetryLimiter | None
    listeners: Sequence[RetryListener]
    use_retry_after: bool
    max_retry_after: float | None
    stop_after_delay: float | None
    classifiers: Sequence[Classifier]
    raise_retry_error: bool
    token_scope: TokenScope


class FurtherSettings(SharedSettings, total=False):
    """The arguments of :class:`RetryConfig` that have to be named."""

    buffer_response: bool
    retry_count_header: str | None


class RetrySettings(FurtherSettings, total=False):
    """The arguments of :class:`RetryConfig` beside the strategy."""

    max_total_attempts: int
    attempt_timeout: float | None


class StandardChanges(RetrySettings, total=False):
    """The keyword arguments of :meth:`RetryConfig.standard`."""

    strategy: Strategy


def default_max_total_attempts() -> int:
    """Return the default of ``max_total_attempts``.

    10, or the environment variable ``AIORETRY_SMITHY_DEFAULT_MAX_TOTAL_ATTEMPTS``.

    Raises:
        ValueError: The variable is not a positive integer.
    """
    text = os.environ.get(_ENVIRONMENT_VARIABLE)
    return positive_integer(_ENVIRONMENT_VARIABLE, text) if text else 10


@refuses_unknown_names
@extensible
@dataclass(frozen=True, slots=True)
class RetryConfig:
    """The settings of a retrying client.

    The first three may be given by position.

    Args:
        strategy: Decides after each attempt.
        max_total_attempts: Attempts of one call, the first one included, >= 1. Unless
            given: 10, or the value of the environment variable
            ``AIORETRY_SMITHY_DEFAULT_MAX_TOTAL_ATTEMPTS``.
        attempt_timeout: Seconds that one attempt may take, to the end of the body, > 0.
            It also covers the body of the last response; for long downloads limit the
            time between two pieces with ``ClientTimeout(sock_read=...)`` instead.
            None: no limit but that of the call. A whole number above 100 is a
            :class:`RuntimeWarning`, because milliseconds would be: write ``200.0``.
        limiter: Limits the retries of all calls together, such as
            :class:`RetryBudget`. None: no such limit.
        listeners: :class:`RetryListener` objects, notified before each retry, in this
            order.
        use_retry_after: Whether to wait at least as long as the server asks for in
            ``Retry-After`` or ``x-amz-retry-after``, or as the ``retry_after`` of an
            exception says, in seconds. A part of the backoff's delay, by chance, is
            added.
        max_retry_after: Seconds, >= 0. If the server asks for a longer wait, the call
            ends with its last outcome. None: only the deadline limits it.
        stop_after_delay: Seconds, > 0. No retry is planned for later than that after
            the first attempt; a rate, a place or an open circuit may still hold it up.
            An attempt under way is not cut, other than by the deadline. The call ends
            with its last outcome. None: no such limit.
        buffer_response: Whether the body of each response is read inside its attempt,
            to its end and into memory, before decorators further in see it. A body that
            breaks off or stalls is then a failed attempt, for circuit breakers and
            limits too; otherwise the caller gets the error, as in aiohttp.
        retry_count_header: The header that tells the server how many attempts were made
            before this one, from the second attempt on. None: no such header.
        classifiers: Functions that tell a Smithy strategy whether a failure is worth a
            retry, in this order. Extend :data:`smithy.DEFAULT_CLASSIFIERS`.
        raise_retry_error: Whether a call raises the :class:`smithy.RetryError` of its
            Smithy strategy when that refuses to retry a retryable failure, instead of
            ending with the last response or exception.
        token_scope: Which calls share a quota and a rate of a Smithy strategy: a name
            for all calls, or a plain function of context and request that returns a
            name, or None for the scope without a name. It is called once per call.
            None: the calls to one server, ``host:port``.

    Raises:
        ValueError: An argument is out of range, or there is none of that name.

    >>> RetryConfig(RetryStrategy.failsafe(), 5, 3.0).attempt_timeout
    3.0
    >>> RetryConfig(RetryStrategy.never(), max_total_attempts=0)
    Traceback (most recent call last):
        ...
    ValueError: max_total_attempts: 0 (expected: an int >= 1)
    """

    strategy: Strategy
    max_total_attempts: int = field(default_factory=default_max_total_attempts)
    attempt_timeout: float | None = None
    limiter: RetryLimiter | None = field(default=None, kw_only=True)
    listeners: Sequence[RetryListener] = field(default=(), kw_only=True, repr=False)
    use_retry_after: bool = field(default=True, kw_only=True)
    max_retry_after: float | None = field(default=60.0, kw_only=True)
    stop_after_delay: float | None = field(default=None, kw_only=True)
    buffer_response: bool = field(default=False, kw_only=True)
    retry_count_header: str | None = field(default=RETRY_COUNT_HEADER, kw_only=True)
    classifiers: Sequence[Classifier] = field(
        default=DEFAULT_CLASSIFIERS, kw_only=True, repr=False
    )
    raise_retry_error: bool = field(default=False, kw_only=True, repr=False)
    token_scope: TokenScope = field(default=None, kw_only=True, repr=False)

    strategies: tuple[AnyStrategy, ...] = field(init=False, repr=False, compare=False)
    """The strategies to ask in turn; empty if the strategy is of Smithy's kind."""

    has_usual_attempt_timeout: bool = field(init=False, repr=False, compare=False)
    """Whether the attempt timeout is that of the standard chain, which none chose."""

    looks_at_content: bool = field(init=False, repr=False, compare=False)
    """Whether one of the strategies looks at bodies."""

    uses_tokens: bool = field(init=False, repr=False, compare=False)
    """Whether the strategy is one of Smithy's kind."""

    def __post_init__(self) -> None:
        self._check()
        if self.attempt_timeout is not None:
            check_unit("attempt_timeout", self.attempt_timeout)
        object.__setattr__(
            self, "listeners", checked(self.listeners, RetryListener, may_wait=True)
        )
        object.__setattr__(self, "classifiers", _classifiers(self.classifiers))
        object.__setattr__(self, "has_usual_attempt_timeout", False)
        strategies = _strategies(self.strategy)
        for name, default in _FOR_SMITHY.items() if strategies else ():
            if (value := getattr(self, name)) != default:
                raise bad_argument(name, value, "only for a Smithy strategy")
        object.__setattr__(self, "strategies", strategies)
        looks = any(isinstance(each, RetryStrategyWithContent) for each in strategies)
        object.__setattr__(self, "looks_at_content", looks)
        object.__setattr__(self, "uses_tokens", not strategies)

    def _check(self) -> None:
        check.integer("max_total_attempts", self.max_total_attempts, 1)
        check.positive("attempt_timeout", self.attempt_timeout, or_none=True)
        check.not_negative("max_retry_after", self.max_retry_after, or_none=True)
        check.positive("stop_after_delay", self.stop_after_delay, or_none=True)
        header = self.retry_count_header
        if header is not None and not is_header_name(header):
            raise bad_argument("retry_count_header", header, "a header name, or None")
        check.kind("limiter", self.limiter, RetryLimiter, or_none=True)
        for name in ("use_retry_after", "buffer_response", "raise_retry_error"):
            check.boolean(name, getattr(self, name))
        if not names_scope(self.token_scope):
            expected = "a str, a plain function of ctx and request, or None"
            raise bad_argument("token_scope", self.token_scope, expected)

    @classmethod
    def standard(cls, **changes: Unpack[StandardChanges]) -> RetryConfig:
        """Return the settings of the standard chain, with changes.

        Up to 6 attempts of at most 10 s each, by :meth:`RetryStrategy.failsafe`, and a
        new budget for the retries to each host,
        ``RetryBudget.per_host(unserved_cost=0.1)``. To share a budget between settings,
        give all of them the same ``limiter``. The environment variable is ignored.
        Calls that have less than 10 s end their attempts with them.

        Args:
            changes: Any argument of :class:`RetryConfig`.

        Raises:
            ValueError: An argument is out of range.

        >>> config = RetryConfig.standard(attempt_timeout=2.0, buffer_response=True)
        >>> config.max_total_attempts, config.attempt_timeout
        (6, 2.0)
        """
        settings: StandardChanges = {
            "max_total_attempts": 6,
            "attempt_timeout": 10.0,
            **changes,
        }
        if "strategy" not in settings:
            settings["strategy"] = RetryStrategy.failsafe()
        if "limiter" not in settings:
            settings["limiter"] = standard_budget()
        config = cls(**settings)
        is_usual = "attempt_timeout" not in changes
        object.__setattr__(config, "has_usual_attempt_timeout", is_usual)
        return config

    @classmethod
    def no_retry(cls) -> RetryConfig:
        """Return the settings of a client that never retries.

        >>> RetryConfig.no_retry().max_total_attempts
        1
        """
        return cls(RetryStrategy.never(), max_total_attempts=1)


def standard_budget(
    listeners: Iterable[RetryBudgetListener] = (),
) -> PerHostRetryBudget:
    """Return the budget of the standard chain."""
    return RetryBudget.per_host(unserved_cost=0.1, listeners=listeners)


# Refused with other strategies, which would ignore them.
_FOR_SMITHY = {
    "classifiers": DEFAULT_CLASSIFIERS,
    "raise_retry_error": False,
    "token_scope": None,
}


def _classifiers(value: object) -> tuple[Classifier, ...]:
    if isinstance(value, Iterable):
        classifiers = tuple(value)
        if all(map(callable, classifiers)):
            return classifiers
    raise bad_argument("classifiers", value, "functions of a failure and a verdict")


def _strategies(strategy: object) -> tuple[AnyStrategy, ...]:
    if isinstance(strategy, RetryStrategy | RetryStrategyWithContent):
        strategies = members_of(strategy)
        for each in strategies:
            if isinstance(each, RetryStrategyWithContent):
                check.integer("max_content_length", each.max_content_length, 1)
        return strategies
    if not is_smithy_strategy(strategy):
        kinds = "a RetryStrategy, a RetryStrategyWithContent or a Smithy strategy"
        raise bad_argument("strategy", strategy, kinds + _what_to_write(strategy))
    if holds_up_the_loop(strategy):
        expected = "methods that do not sleep; derive from smithy, not smithy.sync"
        raise bad_argument("strategy", strategy, expected)
    return ()


def _what_to_write(given: object) -> str:
    """Return how to make a strategy of what was given in its place."""
    if isinstance(given, Backoff):
        return "; write RetryStrategy.failsafe(backoff)"
    if given is RetryStrategy:
        return "; call it: RetryStrategy.failsafe()"
    if isinstance(given, type) and all(hasattr(given, name) for name in METHODS):
        return call_it(given, given)
    kinds = (RetryStrategy, RetryStrategyWithContent, RetryConfig, Backoff)
    hint = call_it(given, *kinds)
    if not hint and callable(given) and not isinstance(given, type):
        return "; write RetryStrategy.on_status(function) for a function"
    return hint


class RetryConfigMapping:
    """Looks up the settings of a call by a key (its host, for example).

    It makes the settings of a key once, and keeps those of the 1024 most recently used
    keys; so any number of hosts may be called. After Armeria's
    ``RetryConfigMapping``.

    >>> mapping = RetryConfigMapping.per_host(
    ...     lambda host: RetryConfig.no_retry()
    ...     if host == "slow.example.com:443"
    ...     else RetryConfig(RetryStrategy.failsafe(), max_total_attempts=3)
    ... )
    >>> decorator = RetryingClient.new_mapped_decorator(mapping)
    """

    __slots__ = ("_configs", "_factory", "_key_fn", "_name")

    def __init__(
        self,
        name: str,
        key_fn: Callable[[ClientRequestContext, HttpRequest], str | None],
        factory: Callable[[str], RetryConfig],
    ) -> None:
        given: object = key_fn
        if not is_plain_function(given):
            later = ", without async" if callable(given) else ""
            expected = f"a function of context and request{later}"
            raise bad_argument("key_fn", given, expected)
        self._name = name
        self._key_fn = key_fn
        self._factory = factory
        self._configs = BoundedMap(factory, kind=RetryConfig)

    @classmethod
    def of(
        cls,
        key_fn: Callable[[ClientRequestContext, HttpRequest], str],
        factory: Callable[[str], RetryConfig],
    ) -> RetryConfigMapping:
        """Make a mapping with a key of your own.

        Args:
            key_fn: Called with the context and the request of each call; returns its
                key.
            factory: Called with a key; returns the settings for it.

        Raises:
            ValueError: An argument is not a function.

        >>> mapping = RetryConfigMapping.of(
        ...     lambda ctx, request: request.url.path,
        ...     lambda path: RetryConfig(RetryStrategy.failsafe()),
        ... )
        """
        return cls("of", key_fn, factory)

    @classmethod
    def per_host(cls, factory: Callable[[str], RetryConfig]) -> RetryConfigMapping:
        """Make a mapping by server.

        Args:
            factory: Called with a key like ``example.com:443``, always with the port;
                returns the settings for it.
        """
        return cls("per_host", lambda ctx, request: host_key(request), factory)

    @classmethod
    def per_method(cls, factory: Callable[[str], RetryConfig]) -> RetryConfigMapping:
        """Make a mapping by method.

        Args:
            factory: Called with a key like ``GET``; returns the settings for it.

        >>> budgets = RetryBudget.per_host()
        >>> reads = RetryConfig.standard(max_total_attempts=4, limiter=budgets)
        >>> writes = RetryConfig.standard(max_total_attempts=2, limiter=budgets)
        >>> mapping = RetryConfigMapping.per_method(
        ...     lambda method: reads if method == "GET" else writes
        ... )
        """
        return cls("per_method", lambda ctx, request: method_key(request), factory)

    @classmethod
    def per_host_and_method(
        cls, factory: Callable[[str], RetryConfig]
    ) -> RetryConfigMapping:
        """Make a mapping by server and method.

        Args:
            factory: Called with a key like ``example.com:443#GET``; returns the
                settings for it.
        """
        return cls(
            "per_host_and_method",
            lambda ctx, request: host_and_method_key(request),
            factory,
        )

    def config_for(
        self, ctx: ClientRequestContext, request: HttpRequest
    ) -> RetryConfig:
        """Return the settings for a call.

        Raises:
            ValueError: The key is not a str, or the factory returns no settings.
        """
        key: object = self._key_fn(ctx, request)
        if isinstance(key, str):
            return self._configs.get(key)
        if key is None and self._name != "of":
            # An invalid URL: one attempt, and aiohttp reports it.
            return _NO_RETRY
        raise bad_argument("key_fn", key, "returns a str")

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self._name}({name_of(self._factory)})"


_NO_RETRY = RetryConfig.no_retry()


_logger = logging.getLogger("aioretry_smithy")

VARIABLE: Final = "AIORETRY_SMITHY_NO_RETRIES"

_unlogged: Final = [
    f"{VARIABLE} is set: calls are neither retried nor hedged, whatever their settings"
]
"""The pending one-time warning of the process, logged instead of ``warnings.warn``."""


def retries_are_off() -> bool:
    """Say whether the environment wants one attempt of each call; warn once of it."""
    if os.environ.get(VARIABLE, "") in {"", "0"}:
        return False
    # Of threads that decorate functions at once, one finds it.
    with suppress(IndexError):
        _logger.warning(_unlogged.pop())
    return True


def in_one_attempt(config: RetryConfig) -> RetryConfig:
    """Return the settings with a single attempt."""
    if config.max_total_attempts == 1:
        return config
    # Not made anew, since that may warn of a setting again.
    changed = copy(config)
    object.__setattr__(changed, "max_total_attempts", 1)
    return changed


def hedges_are_off(call: Call) -> bool:
    """Say whether a call makes one request: as all do, or as the block around wants."""
    retry = None if call.options is None else call.options.retry
    if retry is not None and retry.max_total_attempts == 1:
        return True
    return call.defaults.no_retries
