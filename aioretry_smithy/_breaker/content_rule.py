"""Rules of a circuit breaker with conditions, including conditions on the body."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias, Unpack

from .._policies.conditions import (
    Conditions,
    ContentConditions,
    ContentRuleConditions,
    chained,
)
from .._values import extensible
from .rule import CircuitBreakerRule, CircuitBreakerRuleChain, verdict_of_default
from .strategy import CircuitBreakerStrategy, checked_verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from .._context.context import ClientRequestContext
    from .._policies.conditions import Content

    Read: TypeAlias = Callable[[int], Awaitable[Content]]
    """Reads the first bytes of a body; or returns what a function has returned."""


class Looking:
    """Reads the beginning of a result, and knows whether that has failed.

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


class JudgeOfContent(ABC):
    """A rule with content, or a chain with one; ``a | b`` asks *b* after *a*.

    It is no :class:`.CircuitBreakerStrategy`, since it asks for more.
    """

    __slots__ = ()

    _verdicts: ClassVar[Mapping[int | None, bool]] = {}
    """No status decides alone: the body is asked too."""

    @property
    @abstractmethod
    def asked(self) -> tuple[Member, ...]:
        """The members that are asked in turn; none of them is a chain."""

    async def verdict_on(
        self, ctx: ClientRequestContext, cause: Exception | None, read: Read
    ) -> bool | None:
        """Return the verdict of the first that applies, or that of the default.

        A body is read only where a member is asked that needs it.
        """
        for member in self.asked:
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
        return _chain(self, other)

    def __ror__(
        self, other: CircuitBreakerRule | CircuitBreakerRuleChain
    ) -> JudgeOfContent:
        if not isinstance(other, CircuitBreakerRule | CircuitBreakerRuleChain):
            return NotImplemented
        return _chain(other, self)


AnyJudge: TypeAlias = CircuitBreakerStrategy | JudgeOfContent
"""What decides for a circuit breaker, with content or without."""

Member: TypeAlias = "CircuitBreakerStrategy | CircuitBreakerRuleWithContent"
"""A strategy or a rule that is no chain."""


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

    @property
    def asked(self) -> tuple[Member, ...]:
        """The rule itself, a chain of one member."""
        return (self,)

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


@dataclass(frozen=True, slots=True, repr=False)
class CircuitBreakerRuleChainWithContent(JudgeOfContent):
    """Rules that are asked in turn, at least one of which looks at content."""

    members: tuple[Member, ...]

    @property
    def asked(self) -> tuple[Member, ...]:
        return self.members

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.members))


def _chain(left: AnyJudge, right: AnyJudge) -> JudgeOfContent:
    members = chained(_members_of(left), _members_of(right))
    return CircuitBreakerRuleChainWithContent(members)


def _members_of(judge: AnyJudge) -> tuple[Member, ...]:
    if isinstance(judge, JudgeOfContent):
        return judge.asked
    if isinstance(judge, CircuitBreakerRuleChain):
        return judge.members
    return (judge,)
