"""A retry strategy that is written as a list of conditions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeAlias, TypedDict, Unpack, cast

from .._errors import bad_argument
from .._safety import RetrySafety, forbids_retry, is_timeout, peel, retry_safety
from .decision import RetryDecision
from .rule_arguments import (
    answer_of,
    check_function,
    exceptions_of,
    integers_of,
    is_given,
    methods_of,
    shown,
)
from .strategy import RetryStrategy, backoff_or_default

if TYPE_CHECKING:
    from .._context import ClientRequestContext
    from .._request import HttpRequest
    from .backoff import Backoff
    from .decision import RetryAnswer

Exceptions: TypeAlias = type[Exception] | Collection[type[Exception]]
"""A class of exceptions or several, as after ``except``."""

_CONDITIONS = (
    "statuses",
    "status_classes",
    "exceptions",
    "on_timeout",
    "on_unprocessed",
    "on_response",
)


class RuleConditions(TypedDict, total=False):
    """The keyword arguments of :meth:`RetryRule.no_retry`."""

    methods: Collection[str] | None
    request_filter: Callable[[HttpRequest], bool] | None
    statuses: Collection[int]
    status_classes: Collection[int]
    exceptions: Exceptions
    on_timeout: bool
    on_unprocessed: bool
    on_response: Callable[[ClientRequestContext], bool] | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RetryRule(RetryStrategy):
    """Retries what meets one of its conditions, and leaves the rest to the next one.

    *methods* and *request_filter* say which requests it is about; each that is given
    has to fit. Of the others, the conditions, one has to. Where the attempt failed
    only *exceptions*, *on_timeout* and *on_unprocessed* are looked at; where there is
    a response, only the rest. After Armeria's ``RetryRule``.

    Permanent failures (:attr:`RetrySafety.NO`), an open circuit among them, are matched
    only by *exceptions*, and only where their very class is named. One that says of
    itself that it is not safe to retry (``is_retry_safe`` is False) is never retried.

    Args:
        methods: The methods it is about, in any case; None: all of them.
        request_filter: A plain function that says whether it is about a request.
        statuses: Statuses from 100 to 599.
        status_classes: Hundreds of statuses: 4 for 4xx, 5 for 5xx.
        exceptions: A class of exceptions or several; subclasses are matched too,
            and so is the exception in a group of one.
        on_timeout: Whether an attempt that timed out meets it, by :func:`is_timeout`.
        on_unprocessed: Whether a request that the server surely has not seen meets it,
            by :func:`is_unprocessed`.
        on_response: A plain function that says whether a response meets it, by
            ``ctx.log``. Asked where the status does not meet it. For the body take a
            :class:`RetryStrategyWithContent`.
        backoff: How to wait; ``Backoff.of_default()`` unless given.

    Raises:
        ValueError: An argument is out of range, or there is no condition.

    >>> rule = RetryRule(methods=["GET"], statuses=[429], backoff=Backoff.fixed(2.0))
    >>> rule | RetryRule(on_unprocessed=True, backoff=Backoff.without_delay())
    RetryRule(methods=['GET'], statuses=[429], backoff=Backoff.fixed(2.0)) | \
RetryRule(on_unprocessed=True, backoff=Backoff.fixed(0.0))
    """

    methods: Collection[str] | None = None
    """The methods it is about, in upper case; None: all of them."""

    request_filter: Callable[[HttpRequest], bool] | None = None
    """Says whether it is about a request."""

    statuses: Collection[int] = ()
    """The statuses that meet it."""

    status_classes: Collection[int] = ()
    """The hundreds of statuses that meet it."""

    exceptions: Exceptions = ()
    """The classes of the failures that meet it; a tuple."""

    on_timeout: bool = False
    """Whether an attempt that timed out meets it."""

    # The rule has no need of the factory of this name.
    on_unprocessed: bool = False  # type: ignore[assignment]
    """Whether a request that the server surely has not seen meets it."""

    on_response: Callable[[ClientRequestContext], bool] | None = None
    """Says whether a response meets it."""

    backoff: Backoff | None = None
    """How to wait; None where the rule forbids to retry."""

    def __post_init__(self) -> None:
        self._normalize()
        if not self._has_condition():
            expected = f"at least one of {', '.join(_CONDITIONS)}"
            raise bad_argument("conditions", None, expected)
        object.__setattr__(self, "backoff", backoff_or_default(self.backoff))

    @staticmethod
    def no_retry(**conditions: Unpack[RuleConditions]) -> RetryRule:
        """Make a rule that forbids to retry what meets one of its conditions.

        Strategies behind it are not asked. Without a condition it forbids to retry
        whatever *methods* and *request_filter* leave; without these either, to retry at
        all, and a strategy that is put behind it with ``|`` is warned about.

        Args:
            conditions: The arguments of :class:`RetryRule`, but for the backoff.

        >>> rules = RetryRule.no_retry(methods=["POST"]) | RetryStrategy.failsafe()
        """
        return _NoRetryRule(**conditions)

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> RetryAnswer:
        """Return the backoff, or no_retry, where a condition is met; else None."""
        if not self._is_about(ctx.request):
            return None
        return self._verdict(cause) if self._is_met(ctx, cause) else None

    def __repr__(self) -> str:
        settings = ", ".join(
            f"{setting.name}={shown(getattr(self, setting.name))}"
            for setting in fields(self)
            if is_given(getattr(self, setting.name))
        )
        return f"{self._name()}({settings})"

    def _normalize(self) -> None:
        for name, value in (
            ("methods", methods_of(self.methods)),
            ("statuses", integers_of("statuses", self.statuses, 100, 599)),
            (
                "status_classes",
                integers_of("status_classes", self.status_classes, 1, 5),
            ),
            ("exceptions", exceptions_of(self.exceptions)),
        ):
            object.__setattr__(self, name, value)
        check_function("request_filter", self.request_filter, "the request")
        check_function("on_response", self.on_response, "the context")
        for name in ("on_timeout", "on_unprocessed"):
            if not isinstance(value := getattr(self, name), bool):
                raise bad_argument(name, value, "True or False")

    def _has_condition(self) -> bool:
        return any(is_given(getattr(self, name)) for name in _CONDITIONS)

    def _is_about(self, request: HttpRequest) -> bool:
        if self.methods is not None and request.method not in self.methods:
            return False
        return self.request_filter is None or answer_of(
            "request_filter", self.request_filter(request)
        )

    def _is_met(self, ctx: ClientRequestContext, cause: Exception | None) -> bool:
        return (
            self._is_met_by_response(ctx) if cause is None else self._is_met_by(cause)
        )

    def _is_met_by_response(self, ctx: ClientRequestContext) -> bool:
        status = ctx.log.response_status
        if status is not None and (
            status in self.statuses or status // 100 in self.status_classes
        ):
            return True
        return self.on_response is not None and answer_of(
            "on_response", self.on_response(ctx)
        )

    def _is_met_by(self, cause: Exception) -> bool:
        named = cast("tuple[type[Exception], ...]", self.exceptions)
        safety = retry_safety(cause)
        if safety is RetrySafety.NO:
            return type(peel(cause)) in named
        return (
            isinstance(cause, named)
            or isinstance(peel(cause), named)
            or (self.on_timeout and is_timeout(cause))
            or (self.on_unprocessed and safety is RetrySafety.YES)
        )

    def _verdict(self, cause: Exception | None) -> RetryAnswer:
        return None if forbids_retry(cause) else self.backoff

    def _name(self) -> str:
        return "RetryRule"


class _NoRetryRule(RetryRule):
    def __post_init__(self) -> None:
        self._normalize()
        if self.backoff is not None:
            raise bad_argument(
                "backoff", self.backoff, "none where retries are forbidden"
            )

    @property
    def _answers_always(self) -> bool:
        is_about_all = self.methods is None and self.request_filter is None
        return is_about_all and not self._has_condition()

    def _is_met(self, ctx: ClientRequestContext, cause: Exception | None) -> bool:
        return not self._has_condition() or super()._is_met(ctx, cause)

    def _verdict(self, cause: Exception | None) -> RetryAnswer:
        return RetryDecision.no_retry()

    def _name(self) -> str:
        return "RetryRule.no_retry"
