"""Rules for retries: strategies made of conditions and a backoff."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Unpack

from .._errors import bad_argument
from .._failures.failure import RetrySafety, failure_of
from .._policies.conditions import Conditions, ContentConditions, RuleConditions
from .._values import extensible
from .given_up import safety_in, status_judged_in
from .strategy import (
    RetryAnswer,
    RetryDecision,
    RetryStrategy,
    RetryStrategyWithContent,
    backoff_or_default,
)

if TYPE_CHECKING:
    from .._context.context import ClientRequestContext
    from .._policies.backoff import Backoff
    from .._policies.conditions import Content, ContentRuleConditions


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RetryConditions(Conditions):
    """Conditions, and the answer of a rule that applies."""

    backoff: Backoff | None = None
    """How to wait; None if the rule forbids retries."""

    _forbids: ClassVar[bool] = False
    """Whether the rule forbids retries."""

    def __post_init__(self) -> None:
        # Not super(): a class with slots is not the one that the compiler saw.
        Conditions.__post_init__(self)
        if not self._forbids:
            object.__setattr__(self, "backoff", backoff_or_default(self.backoff))
        elif self.backoff is not None:
            expected = "none where retries are forbidden"
            raise bad_argument("backoff", self.backoff, expected)

    def _safety_of(self, ctx: ClientRequestContext, cause: Exception) -> RetrySafety:
        return safety_in(ctx, cause)

    def _status_of(self, ctx: ClientRequestContext, cause: Exception) -> int | None:
        return status_judged_in(ctx, cause)

    def _answer(self, cause: Exception | None) -> RetryAnswer:
        if self._forbids:
            return RetryDecision.no_retry()
        return None if failure_of(cause).forbids_retry else self.backoff


@extensible
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RetryRule(RetryConditions, RetryStrategy):
    """Retries outcomes that meet a condition; makes no decision otherwise.

    *methods* and *request_filter* are filters: all that are given have to fit. The
    other arguments are conditions: one of them has to be met. After a failure only
    *exceptions*, *on_timeout*, *on_unprocessed* and *slower_than* are checked; after a
    response only *slower_than* and the rest. After Armeria's ``RetryRule``.

    A :class:`aiohttp.ClientResponseError` that was raised for an answer meets
    *statuses* and *status_classes* too. With a final status, such as 404, it meets no
    class above its own, such as :class:`aiohttp.ClientError`.

    Permanent failures (:attr:`RetrySafety.NO`), such as an open circuit or a plain
    :class:`ValueError`, meet only *exceptions*, and only if their own class is named,
    no base class of it. A failure whose ``is_retry_safe`` is False is never retried.

    Args:
        methods: The methods that the rule is for, in upper or lower case; None: all.
        request_filter: A plain function that says whether the rule is for a request.
        statuses: Statuses from 100 to 599.
        status_classes: Hundreds of statuses: 4 for 4xx, 5 for 5xx.
        exceptions: A class of exceptions, a plain function ``(cause) -> bool``, or
            several of either. Subclasses match too, and so does the exception in
            a group of one. A function is not called for permanent failures.
        on_timeout: Whether an attempt that timed out meets it, by :func:`is_timeout`.
        on_unprocessed: Whether a request that the server surely has not seen meets it,
            by :func:`is_unprocessed`, or one whose failure says that a retry is safe.
        slower_than: Seconds, > 0. An attempt that took longer meets it, to the headers
            of its response (``ctx.log.duration``) or to its failure.
        on_response: A plain function that says whether a response meets it, by
            ``ctx.log``. Called if the status does not meet it. For the body take a
            :class:`RetryRuleWithContent`.
        backoff: How to wait; ``Backoff.of_default()`` unless given.

    Raises:
        ValueError: An argument is out of range, or there is no condition.

    >>> rule = RetryRule(methods=["GET"], statuses=[429], backoff=Backoff.fixed(2.0))
    >>> rule | RetryRule(on_unprocessed=True, backoff=Backoff.without_delay())
    RetryRule(methods=['GET'], statuses=[429], backoff=Backoff.fixed(2.0)) | \
RetryRule(on_unprocessed=True, backoff=Backoff.fixed(0.0))
    """

    _made_by: ClassVar[str] = "RetryRule"

    @staticmethod
    def no_retry(**conditions: Unpack[RuleConditions]) -> RetryRule:
        """Make a rule that forbids retries of outcomes that meet the conditions.

        Strategies behind it are not asked. Without a condition it forbids all retries
        of requests that pass *methods* and *request_filter*. Without these either, it
        forbids every retry; putting a strategy behind it with ``|`` is then a warning.

        Args:
            conditions: The arguments of :class:`RetryRule` except the backoff.

        >>> rules = RetryRule.no_retry(methods=["POST"]) | RetryStrategy.failsafe()
        """
        return _NoRetryRule(**conditions)

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> RetryAnswer:
        """Return the backoff, or no_retry, if a condition is met; else None."""
        return self._answer(cause) if self._applies(ctx, cause) else None


class _NoRetryRule(RetryRule):
    _made_by = "RetryRule.no_retry"
    _needs_condition = False
    _forbids = True


@extensible
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RetryRuleWithContent(
    ContentConditions, RetryConditions, RetryStrategyWithContent
):
    """Retries outcomes that meet a condition, including conditions on the body.

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

    _made_by: ClassVar[str] = "RetryRuleWithContent"

    def __post_init__(self) -> None:
        RetryConditions.__post_init__(self)
        self._check_content()

    @staticmethod
    def no_retry(**conditions: Unpack[ContentRuleConditions]) -> RetryRuleWithContent:
        """Make a rule that forbids retries of outcomes that meet the conditions.

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
        self, ctx: ClientRequestContext, cause: Exception | None, content: Content
    ) -> RetryAnswer:
        """Return the backoff, or no_retry, if a condition is met; else None."""
        if self._applies_with(ctx, cause, content):
            return self._answer(cause)
        return None


class _NoRetryRuleWithContent(RetryRuleWithContent):
    _made_by = "RetryRuleWithContent.no_retry"
    _needs_condition = False
    _forbids = True
