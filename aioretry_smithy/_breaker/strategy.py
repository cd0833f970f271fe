"""Decide which outcomes a circuit breaker counts as failures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Unpack

import aiohttp

from .._call.rounds import THROTTLING, is_throttled
from .._context.context import context_of, state_of
from .._errors import UnprocessedRequestError, bad_argument
from .._failures.safety import (
    RetrySafety,
    peel,
    raised_by_caller,
    safety_by_kind,
    was_queued,
)
from .._rules.conditions import Conditions, RuleConditions, chained

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._call.call import Call
    from .._call.hooks import Scope
    from .._context.context import ClientRequestContext

# What most answers are to it; a dictionary is asked quicker than a range.
_VERDICTS = {status: status < 500 for status in range(200, 600)}

# Permanent, yet the server's doing.
_OF_THE_SERVER = (
    aiohttp.RedirectClientError,
    aiohttp.TooManyRedirects,
    aiohttp.ClientConnectorCertificateError,
    aiohttp.ServerFingerprintMismatch,
)


class CircuitBreakerStrategy(ABC):
    """Judges the outcome of a request for a circuit breaker.

    A subclass may have any ``__init__``; one object serves any number of requests.

    >>> class SlowIsBroken(CircuitBreakerStrategy):
    ...     def should_report_as_success(self, ctx, cause):
    ...         return cause is None and ctx.log.duration < 2.0
    """

    @abstractmethod
    def should_report_as_success(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> bool | Awaitable[bool | None] | None:
        """Say whether the circuit breaker is to count a success; plain or async.

        The response goes to the caller afterwards, unread; what is known of it is in
        ``ctx.log``: ``response_status``, ``response_headers``, ``duration``.

        Args:
            ctx: The call or the attempt.
            cause: What it failed with, or None when there is a response; never a
                cancellation, which does not count.

        Returns:
            True for a success, False for a failure, None where the outcome says
            nothing about the server and is not counted. Anything else is a
            :class:`ValueError`, which the caller gets.
        """

    @property
    def _answers_always(self) -> bool:
        """Whether a strategy behind this one is never asked."""
        return True

    @property
    def _verdicts(self) -> Mapping[int, bool]:
        """Which statuses are a success or a failure, whatever else there is to see."""
        return {}

    def _judge(
        self, call: Call, scope: Scope, cause: Exception | None
    ) -> bool | Awaitable[bool | None] | None:
        """Ask it; one that needs no context is given none."""
        return self.should_report_as_success(context_of(call, scope), cause)

    @staticmethod
    def on_server_error_status(
        *, count_throttling: bool = True
    ) -> CircuitBreakerStrategy:
        """Count a status of 5xx, or an exception, as a failure; the default.

        It does not count what says nothing about the server: cancellation, an open
        circuit, a request refused on this side, one that timed out in the queue of the
        session's own connection pool, and the caller's own mistakes, such as a bad URL,
        bad arguments, a body that raises or a closed session.

        Args:
            count_throttling: Whether to count answers that say when to come back: a 429
                as a success, a 503 as a failure. False, as in the standard chain,
                counts no 429 or 503 whose ``Retry-After`` can be read, and no exception
                with ``is_throttling_error`` and a ``retry_after``.

        Returns:
            The one strategy of this kind.

        Raises:
            ValueError: *count_throttling* is no bool.

        >>> CircuitBreakerStrategy.on_server_error_status(count_throttling=False)
        CircuitBreakerStrategy.on_server_error_status(count_throttling=False)
        """
        if not isinstance(count_throttling, bool):
            raise bad_argument("count_throttling", count_throttling, "True or False")
        return _ON_SERVER_ERROR_STATUS if count_throttling else _BUT_NOT_THROTTLING


@dataclass(frozen=True, repr=False)
class _OnServerErrorStatus(CircuitBreakerStrategy):
    count_throttling: bool

    def should_report_as_success(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> bool | None:
        return self._judge(*state_of(ctx), cause)

    @property
    def _verdicts(self) -> Mapping[int, bool]:
        unsure = () if self.count_throttling else THROTTLING
        return {each: _VERDICTS[each] for each in _VERDICTS.keys() - unsure}

    def _judge(self, call: Call, scope: Scope, cause: Exception | None) -> bool | None:
        record = call if scope is call else scope.record
        status = record.outcome.status
        may_throttle = cause is not None or status in THROTTLING
        may_throttle &= not self.count_throttling
        if may_throttle and is_throttled(call, record, cause):
            return None
        if cause is not None:
            return False if _concerns_the_server(cause) else None
        if status is None:
            # A function that has returned has no status.
            return None if record.outcome.ended is None else True
        return not 500 <= status <= 599

    def __repr__(self) -> str:
        setting = "" if self.count_throttling else "count_throttling=False"
        return f"CircuitBreakerStrategy.on_server_error_status({setting})"


_ON_SERVER_ERROR_STATUS = _OnServerErrorStatus(count_throttling=True)
_BUT_NOT_THROTTLING = _OnServerErrorStatus(count_throttling=False)


async def checked_verdict(verdict: Awaitable[bool | None] | object) -> bool | None:
    """Return the verdict of a strategy, awaited if it can be.

    Raises:
        ValueError: It is none.
    """
    if isinstance(verdict, Awaitable):
        verdict = await verdict
    if verdict is None or isinstance(verdict, bool):
        return verdict
    raise bad_argument("should_report_as_success", verdict, "True, False or None")


def _concerns_the_server(cause: BaseException) -> bool:
    cause = peel(cause)
    if isinstance(cause, _OF_THE_SERVER):
        return not raised_by_caller(cause)
    if isinstance(cause, UnprocessedRequestError) or was_queued(cause):
        return False
    return safety_by_kind(cause) is not RetrySafety.NO


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CircuitBreakerRule(Conditions, CircuitBreakerStrategy):
    """Counts what meets one of its conditions, by default as a failure.

    The conditions are those of :class:`RetryRule`. What does not meet them is left to
    :meth:`CircuitBreakerStrategy.on_server_error_status`: a rule adds to the default or
    takes from it. ``a | b`` asks *b* where *a* does not apply; the first rule that
    applies decides. The last may be a strategy of another kind, which then replaces the
    default one.

    With *slower_than* calls that are too slow open the circuit, as by the slow call
    rate of resilience4j. They count together with the failures, for one rate.

    Args:
        methods: The methods it applies to, in upper or lower case; None: all of them.
        request_filter: A plain function that says whether it applies to a request.
        statuses: Statuses from 100 to 599.
        status_classes: Hundreds of statuses: 4 for 4xx, 5 for 5xx.
        exceptions: A class of exceptions, a plain function ``(cause) -> bool``, or
            several of either. Permanent failures, such as a bad certificate, match only
            their own class, no base class of it.
        on_timeout: Whether a request that timed out meets it, by :func:`is_timeout`.
        on_unprocessed: Whether a request that the server surely has not seen meets it,
            by :func:`is_unprocessed`.
        slower_than: Seconds, > 0. A request that took longer meets it, to the headers
            of its response (``ctx.log.duration``) or to its failure. A wait for a
            connection from the session's own pool is part of that.
        on_response: A plain function that says whether a response meets it, by
            ``ctx.log``.

    Raises:
        ValueError: An argument is out of range, or there is no condition.

    >>> slow = CircuitBreakerRule.failure(slower_than=2.0)
    >>> rules = CircuitBreakerRule.ignore(methods=["POST"]) | slow
    >>> decorator = CircuitBreakerClient.new_per_host_decorator(strategy=rules)
    """

    _made_by: ClassVar[str] = "CircuitBreakerRule.failure"

    _verdict: ClassVar[bool | None] = False
    """The answer of ``should_report_as_success`` where the rule applies."""

    @staticmethod
    def failure(**conditions: Unpack[RuleConditions]) -> CircuitBreakerRule:
        """Make a rule that counts what meets one of its conditions as a failure.

        Args:
            conditions: The arguments of :class:`CircuitBreakerRule`, which does the
                same.

        >>> CircuitBreakerRule.failure(statuses=[429])
        CircuitBreakerRule.failure(statuses=[429])
        """
        return CircuitBreakerRule(**conditions)

    @staticmethod
    def success(**conditions: Unpack[RuleConditions]) -> CircuitBreakerRule:
        """Make a rule that counts what meets one of its conditions as a success.

        Args:
            conditions: The arguments of :class:`CircuitBreakerRule`. Without a
                condition every outcome is a success whose request passes *methods* and
                *request_filter*.

        >>> CircuitBreakerRule.success(statuses=[501])
        CircuitBreakerRule.success(statuses=[501])
        """
        return _SuccessRule(**conditions)

    @staticmethod
    def ignore(**conditions: Unpack[RuleConditions]) -> CircuitBreakerRule:
        """Make a rule that does not count what meets one of its conditions.

        Args:
            conditions: The arguments of :class:`CircuitBreakerRule`. Without a
                condition no outcome counts whose request passes *methods* and
                *request_filter*.

        >>> CircuitBreakerRule.ignore(on_unprocessed=True)
        CircuitBreakerRule.ignore(on_unprocessed=True)
        """
        return _IgnoringRule(**conditions)

    def should_report_as_success(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> bool | Awaitable[bool | None] | None:
        """Return its verdict where a condition is met, else that of the default."""
        return _verdict_of((self,), ctx, cause)

    def __or__(self, other: CircuitBreakerStrategy) -> CircuitBreakerRuleChain:
        return _chain(self, other)


class _SuccessRule(CircuitBreakerRule):
    _made_by = "CircuitBreakerRule.success"
    _needs_condition = False
    _verdict = True


class _IgnoringRule(CircuitBreakerRule):
    _made_by = "CircuitBreakerRule.ignore"
    _needs_condition = False
    _verdict = None


@dataclass(frozen=True, slots=True, repr=False)
class CircuitBreakerRuleChain(CircuitBreakerStrategy):
    """Rules that are asked in turn: two members or more, none of them a chain."""

    members: tuple[CircuitBreakerStrategy, ...]

    def should_report_as_success(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> bool | Awaitable[bool | None] | None:
        return _verdict_of(self.members, ctx, cause)

    def __or__(self, other: CircuitBreakerStrategy) -> CircuitBreakerRuleChain:
        return _chain(self, other)

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.members))


def _verdict_of(
    members: tuple[CircuitBreakerStrategy, ...],
    ctx: ClientRequestContext,
    cause: Exception | None,
) -> bool | Awaitable[bool | None] | None:
    for member in members:
        if not isinstance(member, CircuitBreakerRule):
            return member.should_report_as_success(ctx, cause)
        if member._applies(ctx, cause):
            return member._verdict
    default = CircuitBreakerStrategy.on_server_error_status()
    return default.should_report_as_success(ctx, cause)


def _chain(
    left: CircuitBreakerStrategy, right: CircuitBreakerStrategy
) -> CircuitBreakerRuleChain:
    if not isinstance(right, CircuitBreakerStrategy):
        return NotImplemented
    return CircuitBreakerRuleChain(chained(_members_of(left), _members_of(right)))


def _members_of(strategy: CircuitBreakerStrategy) -> tuple[CircuitBreakerStrategy, ...]:
    if isinstance(strategy, CircuitBreakerRuleChain):
        return strategy.members
    return (strategy,)
