"""Decide which outcomes a circuit breaker counts as failures, by rules or at will."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, Unpack

import aiohttp

from .. import _checks as check
from .._call.deadline_cut import CUT, until_deadline
from .._call.servers import THROTTLING, is_throttled, status_judged
from .._errors import UnprocessedRequestError, bad_argument
from .._failures.failure import failure_of, peel
from .._policies.conditions import (
    Chain,
    Conditions,
    Content,
    ContentConditions,
    ContentRuleConditions,
    RuleConditions,
    chained,
    members_of,
)
from .._values import extensible

if TYPE_CHECKING:
    from .._context.context import ClientRequestContext

    Read: TypeAlias = Callable[[int], Awaitable[Content]]
    """Reads the first bytes of a body; or returns what a function has returned."""


# What most answers have; a set is asked quicker than a range.
_GOOD_STATUSES: Final[frozenset[int | None]] = frozenset(range(200, 500))

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

    def verdict_on(
        self, ctx: ClientRequestContext, cause: Exception | None, read: object
    ) -> Awaitable[bool | None] | bool:
        """Return the strategy's verdict without reading the body."""
        verdict = self.should_report_as_success(ctx, cause)
        return verdict if isinstance(verdict, bool) else checked_verdict(ctx, verdict)

    @property
    def _answers_always(self) -> bool:
        """Whether the strategy always decides, so later ones are never asked."""
        return True

    @property
    def _good_statuses(self) -> frozenset[int | None]:
        """The statuses that alone make an answer a success."""
        return frozenset()

    @staticmethod
    def on_server_error_status(
        *, count_throttling: bool = True
    ) -> CircuitBreakerStrategy:
        """Count a status of 5xx, or an exception, as a failure; the default.

        An exception that was raised for an answer is judged by its status. It does not
        count what says nothing about the server: cancellation, an open
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
        check.boolean("count_throttling", count_throttling)
        return _ON_SERVER_ERROR_STATUS if count_throttling else _BUT_NOT_THROTTLING


@dataclass(frozen=True, repr=False)
class _CountServerErrors(CircuitBreakerStrategy):
    count_throttling: bool

    def should_report_as_success(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> bool | None:
        outcome = ctx.record.outcome
        status = status_judged(outcome, cause)
        may_throttle = cause is not None or status in THROTTLING
        may_throttle &= not self.count_throttling
        if may_throttle and is_throttled(ctx, cause):
            return None
        if status is not None:
            return not 500 <= status <= 599
        if cause is not None:
            return False if _concerns_the_server(cause) else None
        # A function that has returned has no status.
        return None if outcome.ended is None else True

    @property
    def _good_statuses(self) -> frozenset[int | None]:
        return _GOOD_STATUSES.difference(() if self.count_throttling else THROTTLING)

    def __repr__(self) -> str:
        setting = "" if self.count_throttling else "count_throttling=False"
        return f"CircuitBreakerStrategy.on_server_error_status({setting})"


_ON_SERVER_ERROR_STATUS = _CountServerErrors(count_throttling=True)
_BUT_NOT_THROTTLING = _CountServerErrors(count_throttling=False)


async def checked_verdict(
    ctx: ClientRequestContext, verdict: Awaitable[bool | None] | object
) -> bool | None:
    """Return the verdict of a strategy, awaited if it can be; None at the deadline.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(verdict, bool) and isinstance(verdict, Awaitable):
        verdict = await until_deadline(ctx, verdict)
        if verdict is CUT:
            return None
    if verdict is None or isinstance(verdict, bool):
        return verdict
    raise bad_argument("should_report_as_success", verdict, "True, False or None")


def _concerns_the_server(cause: BaseException) -> bool:
    failure, cause = failure_of(cause), peel(cause)
    if isinstance(cause, _OF_THE_SERVER):
        return not failure.raised_by_caller
    return not isinstance(cause, UnprocessedRequestError) and failure.is_of_server


@extensible
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CircuitBreakerRule(Conditions, CircuitBreakerStrategy):
    """Counts outcomes that meet a condition, by default as failures.

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
            their own class, no base class of it; and an exception that was raised for
            a final status, such as 404, no class above its own. It meets *statuses*.
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
        """Make a rule that counts outcomes meeting a condition as failures.

        Args:
            conditions: The arguments of :class:`CircuitBreakerRule`, which does the
                same.

        >>> CircuitBreakerRule.failure(statuses=[429])
        CircuitBreakerRule.failure(statuses=[429])
        """
        return CircuitBreakerRule(**conditions)

    @staticmethod
    def success(**conditions: Unpack[RuleConditions]) -> CircuitBreakerRule:
        """Make a rule that counts outcomes meeting a condition as successes.

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
        """Make a rule that ignores outcomes meeting a condition.

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
        """Return the rule's verdict if a condition is met, else the default verdict."""
        return _verdict_of((self,), ctx, cause)

    def _decides(self, ctx: ClientRequestContext, cause: Exception | None) -> bool:
        """Say whether the rule applies."""
        return self._applies(ctx, cause)

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


class CircuitBreakerRuleChain(Chain, CircuitBreakerStrategy):
    """A chain of rules, whose last member may be a strategy of another kind."""

    def should_report_as_success(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> bool | Awaitable[bool | None] | None:
        return _verdict_of(self.members, ctx, cause)

    def __or__(self, other: CircuitBreakerStrategy) -> CircuitBreakerRuleChain:
        return _chain(self, other)


def _verdict_of(
    members: tuple[CircuitBreakerStrategy, ...],
    ctx: ClientRequestContext,
    cause: Exception | None,
) -> bool | Awaitable[bool | None] | None:
    for member in members:
        if not isinstance(member, CircuitBreakerRule):
            return member.should_report_as_success(ctx, cause)
        if member._decides(ctx, cause):
            return member._verdict
    return verdict_of_default(ctx, cause)


def verdict_of_default(
    ctx: ClientRequestContext, cause: Exception | None
) -> bool | Awaitable[bool | None] | None:
    """Return the verdict on what no rule applies to."""
    default = CircuitBreakerStrategy.on_server_error_status()
    return default.should_report_as_success(ctx, cause)


def _chain(
    left: CircuitBreakerStrategy, right: CircuitBreakerStrategy
) -> CircuitBreakerRuleChain:
    if not isinstance(right, CircuitBreakerStrategy):
        return NotImplemented
    return CircuitBreakerRuleChain(chained(members_of(left), members_of(right)))


class Looking:
    """Reads the beginning of a result, and stores whether reading has failed.

    Args:
        look: Reads up to a number of bytes.
    """

    __slots__ = ("_look", "has_failed")

    has_failed: bool

    def __init__(self, look: Read) -> None:
        self._look = look
        self.has_failed = False

    async def __call__(self, limit: int) -> Content:
        """Return the content, up to so many bytes."""
        try:
            return await self._look(limit)
        except Exception:
            self.has_failed = True
            raise


class JudgeOfContent:
    """A rule with content, or a chain with one; ``a | b`` asks *b* after *a*.

    It is no :class:`.CircuitBreakerStrategy`, since it asks for more.
    """

    __slots__ = ()

    _good_statuses: ClassVar[frozenset[int | None]] = frozenset()
    """No status decides alone: the body is asked too."""

    async def verdict_on(
        self, ctx: ClientRequestContext, cause: Exception | None, read: Read
    ) -> bool | None:
        """Return the verdict of the first rule that applies, or the default verdict.

        A body is read only where a member is asked that needs it.
        """
        for member in members_of(self):
            if isinstance(member, CircuitBreakerRuleWithContent):
                if await member._decides_by(ctx, cause, read):
                    return member._verdict
            elif isinstance(member, CircuitBreakerRule):
                if member._decides(ctx, cause):
                    return member._verdict
            else:
                return await checked_verdict(
                    ctx, member.should_report_as_success(ctx, cause)
                )
        return await checked_verdict(ctx, verdict_of_default(ctx, cause))

    def __or__(self, other: AnyJudge) -> JudgeOfContent:
        if not isinstance(other, CircuitBreakerStrategy | JudgeOfContent):
            return NotImplemented
        return _chain_by_content(self, other)

    def __ror__(
        self, other: CircuitBreakerRule | CircuitBreakerRuleChain
    ) -> JudgeOfContent:
        if not isinstance(other, CircuitBreakerRule | CircuitBreakerRuleChain):
            return NotImplemented
        return _chain_by_content(other, self)


AnyJudge: TypeAlias = CircuitBreakerStrategy | JudgeOfContent
"""What decides for a circuit breaker, with content or without."""


@extensible
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CircuitBreakerRuleWithContent(ContentConditions, JudgeOfContent):
    """Counts outcomes that meet a condition, including conditions on the body.

    It is a :class:`CircuitBreakerRule` with one more condition, for servers that answer
    200 with an error inside. It waits for the beginning of a body if *on_content* is
    given, *methods* fits, and the status has not decided; the caller still gets the
    whole body, by ``read()`` and by streaming. After Armeria's
    ``CircuitBreakerRuleWithContent``.

    If the body breaks off or stalls meanwhile, the attempt has failed: the failure is
    judged in its place, and raised.

    Args:
        on_content: A plain function that says whether the beginning of a body meets it;
            called with ``b""`` without a body, with None if the attempt failed, and
            with what a function of :func:`rpc` returned. It is called last, and not for
            permanent failures.
        max_content_length: Bytes of each body to look at, >= 1; 1 MiB unless given.
        methods: This and all others: as for :class:`CircuitBreakerRule`.

    Raises:
        ValueError: An argument is out of range, or there is no condition.

    >>> def is_error(content):
    ...     return content is not None and b'"error"' in content
    >>> rule = CircuitBreakerRuleWithContent(
    ...     on_content=is_error, max_content_length=4096
    ... )
    >>> rules = CircuitBreakerRule.ignore(statuses=[429]) | rule
    >>> decorator = CircuitBreakerClient.new_per_host_decorator(strategy=rules)
    """

    _made_by: ClassVar[str] = "CircuitBreakerRuleWithContent.failure"

    _verdict: ClassVar[bool | None] = False
    """The answer of ``should_report_as_success`` where the rule applies."""

    def __post_init__(self) -> None:
        # Not super(): a class with slots is not the one that the compiler saw.
        Conditions.__post_init__(self)
        self._check_content()

    @staticmethod
    def failure(
        **conditions: Unpack[ContentRuleConditions],
    ) -> CircuitBreakerRuleWithContent:
        """Make a rule that counts outcomes meeting a condition as failures.

        Args:
            conditions: The arguments of :class:`CircuitBreakerRuleWithContent`, which
                does the same.

        >>> CircuitBreakerRuleWithContent.failure(statuses=[429])
        CircuitBreakerRuleWithContent.failure(statuses=[429])
        """
        return CircuitBreakerRuleWithContent(**conditions)

    @staticmethod
    def success(
        **conditions: Unpack[ContentRuleConditions],
    ) -> CircuitBreakerRuleWithContent:
        """Make a rule that counts outcomes meeting a condition as successes.

        Args:
            conditions: The arguments of :class:`CircuitBreakerRuleWithContent`. Without
                a condition as :meth:`CircuitBreakerRule.success`.

        >>> CircuitBreakerRuleWithContent.success(statuses=[501])
        CircuitBreakerRuleWithContent.success(statuses=[501])
        """
        return _SuccessRuleWithContent(**conditions)

    @staticmethod
    def ignore(
        **conditions: Unpack[ContentRuleConditions],
    ) -> CircuitBreakerRuleWithContent:
        """Make a rule that ignores outcomes meeting a condition.

        Args:
            conditions: The arguments of :class:`CircuitBreakerRuleWithContent`. Without
                a condition as :meth:`CircuitBreakerRule.ignore`.

        >>> CircuitBreakerRuleWithContent.ignore(on_unprocessed=True)
        CircuitBreakerRuleWithContent.ignore(on_unprocessed=True)
        """
        return _IgnoringRuleWithContent(**conditions)

    def should_report_as_success(
        self, ctx: ClientRequestContext, cause: Exception | None, content: Content
    ) -> bool | Awaitable[bool | None] | None:
        """Return the rule's verdict if a condition is met, else the default verdict."""
        if self._applies_with(ctx, cause, content):
            return self._verdict
        return verdict_of_default(ctx, cause)

    async def _decides_by(
        self, ctx: ClientRequestContext, cause: Exception | None, read: Read
    ) -> bool:
        """Say whether the rule applies; the body is read only if it may decide."""
        content = None
        if cause is None and self._looks_at(ctx):
            content = await read(self.max_content_length)
        return self._applies_with(ctx, cause, content)


class _SuccessRuleWithContent(CircuitBreakerRuleWithContent):
    _made_by = "CircuitBreakerRuleWithContent.success"
    _needs_condition = False
    _verdict = True


class _IgnoringRuleWithContent(CircuitBreakerRuleWithContent):
    _made_by = "CircuitBreakerRuleWithContent.ignore"
    _needs_condition = False
    _verdict = None


class CircuitBreakerRuleChainWithContent(Chain, JudgeOfContent):
    """A chain of rules, of which at least one looks at content."""


def _chain_by_content(left: AnyJudge, right: AnyJudge) -> JudgeOfContent:
    members = chained(members_of(left), members_of(right))
    return CircuitBreakerRuleChainWithContent(members)
