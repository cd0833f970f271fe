"""Match requests and outcomes, by what bodies say too, and chain rules."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, TypedDict, cast

from .. import _checks as check
from .._errors import bad_argument, is_plain_function
from .._failures.failure import RetrySafety, failure_of, peel
from .._failures.hints import ABOVE_ANSWERS

if TYPE_CHECKING:
    from .._context.context import ClientRequestContext
    from .._request.request import HttpRequest


Failure: TypeAlias = type[Exception] | Callable[[Exception], bool]
"""A class of exceptions, or a plain function that says whether an exception matches."""


# Iterables too, but never meant as a collection of names or numbers.
_TEXT = (str, bytes, bytearray, memoryview)


Exceptions: TypeAlias = Failure | Collection[Failure]
"""Failures by class, like after ``except``, or by function; one or several."""


class RuleConditions(TypedDict, total=False):
    """The keyword arguments of a rule without a backoff."""

    methods: Collection[str] | None
    request_filter: Callable[[HttpRequest], bool] | None
    statuses: Collection[int]
    status_classes: Collection[int]
    exceptions: Exceptions
    on_timeout: bool
    on_unprocessed: bool
    slower_than: float | None
    on_response: Callable[[ClientRequestContext], bool] | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Conditions:
    """Filters and conditions of a rule, and whether an outcome meets them.

    A rule derives from it, describes the arguments and adds its answer.
    """

    methods: Collection[str] | None = None
    request_filter: Callable[[HttpRequest], bool] | None = None
    statuses: Collection[int] = ()
    status_classes: Collection[int] = ()
    exceptions: Exceptions = ()
    on_timeout: bool = False
    on_unprocessed: bool = False
    slower_than: float | None = None
    on_response: Callable[[ClientRequestContext], bool] | None = None

    _made_by: ClassVar[str]
    """The class or method that makes the rule, for the repr."""

    _needs_condition: ClassVar[bool] = True
    """Whether a rule with filters alone is refused."""

    _conditions: ClassVar[tuple[str, ...]] = (
        "statuses",
        "status_classes",
        "exceptions",
        "on_timeout",
        "on_unprocessed",
        "slower_than",
        "on_response",
    )

    def __post_init__(self) -> None:
        classes = integers_of("status_classes", self.status_classes, 1, 5)
        checked = {
            "methods": methods_of(self.methods),
            "statuses": integers_of("statuses", self.statuses, 100, 599),
            "status_classes": classes,
            "exceptions": exceptions_of(self.exceptions),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        check.function("request_filter", self.request_filter, "the request")
        check.function("on_response", self.on_response, "the context")
        check.positive("slower_than", self.slower_than, or_none=True)
        for name in ("on_timeout", "on_unprocessed"):
            check.boolean(name, getattr(self, name))
        if self._needs_condition and not self._has_condition():
            expected = f"at least one of {', '.join(self._conditions)}"
            raise bad_argument("conditions", None, expected)

    def __repr__(self) -> str:
        settings = ", ".join(
            f"{setting.name}={setting_repr(value)}"
            for setting in fields(self)
            if is_given(value := getattr(self, setting.name), setting.default)
        )
        return f"{self._made_by}({settings})"

    @property
    def _answers_always(self) -> bool:
        is_about_all = self.methods is None and self.request_filter is None
        return is_about_all and not self._has_condition()

    def _has_condition(self) -> bool:
        return any(is_given(getattr(self, name)) for name in self._conditions)

    def _applies(self, ctx: ClientRequestContext, cause: Exception | None) -> bool:
        return self._is_about(ctx.request) and self._is_met(ctx, cause)

    def _is_about(self, request: HttpRequest) -> bool:
        return self._has_method(request) and (
            self.request_filter is None
            or checked_answer("request_filter", self.request_filter(request))
        )

    def _has_method(self, request: HttpRequest) -> bool:
        return self.methods is None or request.method in self.methods

    def _is_met(self, ctx: ClientRequestContext, cause: Exception | None) -> bool:
        if not (self._needs_condition or self._has_condition()):
            return True
        if cause is None:
            return self._is_met_by_response(ctx)
        return self._is_met_by_failure(ctx, cause)

    def _is_met_by_response(self, ctx: ClientRequestContext) -> bool:
        return (
            self._has_status(ctx.log.response_status)
            or (self.slower_than is not None and self._is_slow(ctx.log.duration))
            or (
                self.on_response is not None
                and checked_answer("on_response", self.on_response(ctx))
            )
        )

    def _has_status(self, status: int | None) -> bool:
        return status is not None and (
            status in self.statuses or status // 100 in self.status_classes
        )

    def _is_met_by_failure(self, ctx: ClientRequestContext, cause: Exception) -> bool:
        entries = cast("tuple[Failure, ...]", self.exceptions)
        classes = tuple(entry for entry in entries if isinstance(entry, type))
        peeled = cast("Exception", peel(cause))
        safety, status = self._safety_of(ctx, cause), self._status_of(ctx, cause)
        if safety is RetrySafety.NO:
            if status is None:
                return type(peeled) in classes
            classes = tuple(entry for entry in classes if entry not in ABOVE_ANSWERS)
        return (
            self._has_status(status)
            or isinstance(cause, classes)
            or isinstance(peeled, classes)
            or (self.on_timeout and failure_of(cause).kind.is_timeout)
            or (self.on_unprocessed and safety is RetrySafety.YES)
            # A body may have failed long after the headers.
            or self._is_slow(ctx.log.total_duration)
            or any(
                checked_answer("exceptions", entry(peeled))
                for entry in entries
                if not isinstance(entry, type)
            )
        )

    def _safety_of(self, ctx: ClientRequestContext, cause: Exception) -> RetrySafety:
        """Judge a failure by its class and fault; a retry rule also by its safety."""
        return failure_of(cause).safety_by_kind

    def _status_of(self, ctx: ClientRequestContext, cause: Exception) -> int | None:
        """Return the status of the answer that was raised; None without one."""
        failure = failure_of(cause)
        # What the service of a token has answered is no word of the server.
        return None if failure.queue is not None else failure.status

    def _is_slow(self, seconds: float | None) -> bool:
        limit = self.slower_than
        return limit is not None and seconds is not None and seconds > limit


def methods_of(value: object) -> frozenset[str] | None:
    """Return the methods in upper case, or None for all of them."""
    if value is None:
        return None
    if isinstance(value, Iterable) and not isinstance(value, _TEXT):
        methods = tuple(value)
        # A method is one word.
        if methods and all(isinstance(m, str) and m.split() == [m] for m in methods):
            return frozenset(method.upper() for method in methods)
    raise bad_argument("methods", value, 'a collection such as ["GET"], or None')


def integers_of(name: str, value: object, low: int, high: int) -> frozenset[int]:
    """Return a collection of integers, each from *low* to *high*."""
    if isinstance(value, Iterable) and not isinstance(value, _TEXT):
        numbers = tuple(value)
        if all(_is_integer(number) and low <= number <= high for number in numbers):
            return frozenset(map(int, numbers))
    raise bad_argument(name, value, f"a collection of integers in [{low}, {high}]")


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def exceptions_of(value: object) -> tuple[Failure, ...]:
    """Return classes of exceptions and predicates, given as one or several."""
    entries = (value,) if callable(value) else value
    if isinstance(entries, Iterable) and not isinstance(entries, _TEXT):
        entries = tuple(entries)
        if all(map(_is_failure, entries)):
            return entries
    expected = "classes derived from Exception or plain functions of the cause"
    raise bad_argument("exceptions", value, expected)


def _is_failure(entry: object) -> bool:
    if isinstance(entry, type):
        return issubclass(entry, Exception)
    return is_plain_function(entry)


def checked_answer(name: str, answer: object) -> bool:
    """Return the answer of a user's function as a bool; refuse an awaitable."""
    if isinstance(answer, Awaitable):
        if inspect.iscoroutine(answer):
            answer.close()
        raise bad_argument(name, answer, "True or False, without awaiting it")
    return bool(answer)


def is_given(value: object, default: object = None) -> bool:
    """Say whether a setting differs from its default."""
    if isinstance(value, frozenset | tuple):
        return bool(value)
    return value is not None and value is not False and value != default


def setting_repr(value: object) -> str:
    """Return a setting as it would be written in code."""
    if isinstance(value, frozenset):
        return repr(sorted(value))
    if isinstance(value, tuple):
        return f"[{', '.join(map(_name_of, value))}]"
    return repr(value)


def _name_of(entry: object) -> str:
    if not isinstance(entry, type):
        return repr(entry)
    module = "" if entry.__module__ == "builtins" else f"{entry.__module__}."
    return f"{module}{entry.__qualname__}"


@dataclass(frozen=True, slots=True, repr=False)
class Chain:
    """Strategies or rules that are asked in turn."""

    members: tuple[Any, ...]
    """Two members or more; none of them is a chain itself."""

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.members))


def members_of(asked: object) -> tuple[Any, ...]:
    """Return the members of a chain in order, or the one strategy in a tuple."""
    return asked.members if isinstance(asked, Chain) else (asked,)


def chained(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the members of both, and warn if those of *right* are never asked.

    The warning points at the line with the ``|``: two frames above the caller.
    """
    catch_all = next((member for member in left if member._answers_always), None)
    if right and catch_all is not None:
        warnings.warn(
            f"{' | '.join(map(repr, right))} is never reached: {catch_all!r} in front"
            " of it always decides",
            RuntimeWarning,
            stacklevel=4,
        )
    return (*left, *right)


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
        check.function("on_content", self.on_content, "bytes or None")
        check.integer("max_content_length", self.max_content_length, 1)

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
