"""Conditions of rules that look at the beginning of a body too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from .._errors import bad_argument
from .._failures.failure import RetrySafety
from .conditions import Conditions, RuleConditions, check_function, checked_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._context.context import ClientRequestContext

Content: TypeAlias = Any
"""The beginning of a body, as bytes, or None; or what a function of rpc returned."""

MAX_CONTENT_LENGTH: Final = 1024 * 1024
"""The bytes of each body to look at, unless a rule or a strategy says otherwise."""


class ContentRuleConditions(RuleConditions, total=False):
    """The keyword arguments of a rule with content, without a backoff."""

    on_content: Callable[[Content], bool] | None
    max_content_length: int


@dataclass(frozen=True, kw_only=True, repr=False)
class ContentConditions(Conditions):
    """Conditions including a content condition; the body is read only if it decides.

    The classes of rules have its fields in slots of their own, so that they may derive
    from others with slots.
    """

    __slots__ = ()

    on_content: Callable[[Content], bool] | None = None
    max_content_length: int = MAX_CONTENT_LENGTH

    _conditions: ClassVar[tuple[str, ...]] = (*Conditions._conditions, "on_content")

    def _check_content(self) -> None:
        check_function("on_content", self.on_content, "bytes or None")
        checked_length(self.max_content_length)

    def _looks_at(self, ctx: ClientRequestContext) -> bool:
        """Say whether the rule needs the body of a response."""
        # Without the user's functions, which are called once only.
        return (
            self.on_content is not None
            and self._has_method(ctx.request)
            and not self._has_status(ctx.log.response_status)
        )

    def _applies_with(
        self, ctx: ClientRequestContext, cause: Exception | None, content: Content
    ) -> bool:
        """Say whether a condition is met, that on the content last."""
        return self._is_about(ctx.request) and (
            self._is_met(ctx, cause) or self._is_met_by_content(ctx, cause, content)
        )

    def _is_met_by_content(
        self, ctx: ClientRequestContext, cause: Exception | None, content: Content
    ) -> bool:
        if self.on_content is None:
            return False
        if cause is not None and self._safety_of(ctx, cause) is RetrySafety.NO:
            return False
        return checked_answer("on_content", self.on_content(content))


def checked_length(length: object) -> int:
    """Return the number of bytes of a body to look at.

    Raises:
        ValueError: It is not a positive integer.
    """
    if type(length) is int and length >= 1:
        return length
    raise bad_argument("max_content_length", length, "an integer >= 1")
