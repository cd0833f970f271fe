"""Write a rule with a condition on the body of a response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from .._failures.safety import RetrySafety
from .._rules.arguments import check_function, checked_answer
from .._rules.conditions import Conditions, RuleConditions
from .content_strategy import RetryStrategyWithContent, checked_length
from .given_up import safety_in
from .rule import RetryConditions

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._context.context import ClientRequestContext
    from .decision import RetryAnswer


class ContentRuleConditions(RuleConditions, total=False):
    """The keyword arguments of :meth:`RetryRuleWithContent.no_retry`."""

    on_content: Callable[[Any], bool] | None
    max_content_length: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RetryRuleWithContent(RetryConditions, RetryStrategyWithContent):
    """Retries outcomes that meet one of its conditions, also one on the body.

    It is a :class:`RetryRule` with one more condition. It waits for the beginning of a
    body if *on_content* is given, *methods* fits, and the status has not decided. After
    Armeria's ``RetryRuleWithContent``.

    Args:
        on_content: A plain function that says whether the beginning of a body meets it;
            called with ``b""`` without a body, with None if the attempt failed, and
            with what a function of :func:`rpc` returned. It is called last, and not for
            permanent failures.
        max_content_length: Bytes of each body to look at, >= 1; 1 MiB unless given.
        methods: This and all others: as for :class:`RetryRule`.

    Raises:
        ValueError: An argument is out of range, or there is no condition.

    >>> def is_locked(content):
    ...     return content is not None and b"locked" in content
    >>> rule = RetryRuleWithContent(
    ...     statuses=[503], on_content=is_locked, max_content_length=4096
    ... )
    >>> asyncio.run(ask(rule, status=200, content=b"locked")) is rule.backoff
    True
    """

    on_content: Callable[[Any], bool] | None = None
    max_content_length: int = RetryStrategyWithContent.max_content_length

    _made_by: ClassVar[str] = "RetryRuleWithContent"

    _conditions: ClassVar[tuple[str, ...]] = (*Conditions._conditions, "on_content")

    def __post_init__(self) -> None:
        RetryConditions.__post_init__(self)
        check_function("on_content", self.on_content, "bytes or None")
        checked_length(self)

    @staticmethod
    def no_retry(**conditions: Unpack[ContentRuleConditions]) -> RetryRuleWithContent:
        """Make a rule that forbids retries of outcomes that meet its conditions.

        Like :meth:`RetryRule.no_retry`.

        Args:
            conditions: The arguments of :class:`RetryRuleWithContent` except the
                backoff.

        >>> def is_final(content):
        ...     return content is not None and b"never" in content
        >>> final = RetryRuleWithContent.no_retry(on_content=is_final)
        >>> rules = final | RetryStrategy.failsafe()
        """
        return _NoRetryRuleWithContent(**conditions)

    def should_retry(
        self,
        ctx: ClientRequestContext,
        cause: Exception | None,
        content: Any,
    ) -> RetryAnswer:
        """Return the backoff, or no_retry, if a condition is met; else None."""
        if not self._is_about(ctx.request):
            return None
        if self._is_met(ctx, cause) or self._is_met_by_content(ctx, cause, content):
            return self._answer(cause)
        return None

    def _looks_at(self, ctx: ClientRequestContext) -> bool:
        # Without the user's functions, which are called once only.
        return (
            self.on_content is not None
            and self._has_method(ctx.request)
            and not self._has_status(ctx.log.response_status)
        )

    def _is_met_by_content(
        self, ctx: ClientRequestContext, cause: Exception | None, content: Any
    ) -> bool:
        if self.on_content is None:
            return False
        if cause is not None and safety_in(ctx, cause) is RetrySafety.NO:
            return False
        return checked_answer("on_content", self.on_content(content))


class _NoRetryRuleWithContent(RetryRuleWithContent):
    _made_by = "RetryRuleWithContent.no_retry"
    _needs_condition = False
    _forbids = True
