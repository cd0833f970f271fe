"""Rules of a circuit breaker with conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Unpack

from .._policies.conditions import Conditions, RuleConditions, chained
from .._values import extensible
from .strategy import CircuitBreakerStrategy

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from .._context.context import ClientRequestContext


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
    return CircuitBreakerRuleChain(chained(_members_of(left), _members_of(right)))


def _members_of(strategy: CircuitBreakerStrategy) -> tuple[CircuitBreakerStrategy, ...]:
    if isinstance(strategy, CircuitBreakerRuleChain):
        return strategy.members
    return (strategy,)
