"""Retry strategies, chains of them, and rules, which are made of conditions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar, Unpack

from .. import _checks as check
from .._errors import bad_argument
from .._failures.failure import SERVER_ERRORS, TRANSIENT, RetrySafety, failure_of
from .._policies.backoff import Backoff
from .._policies.conditions import (
    MAX_CONTENT_LENGTH,
    Chain,
    Conditions,
    ContentConditions,
    RuleConditions,
    chained,
    members_of,
)
from .._text.printable import name_without_arguments
from .._values import extensible
from .ending import safety_in, status_judged_in

if TYPE_CHECKING:
    from .._call.call import Call
    from .._context.context import ClientRequestContext
    from .._context.options import Options
    from .._policies.conditions import Content, ContentRuleConditions
    from .._request.request import HttpRequest


IDEMPOTENT_METHODS = frozenset(
    {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY"}
)
"""The methods that a server may see twice (RFC 9110, section 9.2.2, and QUERY)."""


def is_idempotent(ctx: ClientRequestContext) -> bool:
    """Say whether the server may see the request twice, by method or by header."""
    return may_be_repeated(ctx.call, ctx.request)


def may_be_hedged(ctx: ClientRequestContext, request: HttpRequest) -> bool:
    """Say whether the server may see a request twice at the same time.

    Not one with a key that was made for it: while one is in work, servers refuse
    another with its key, or carry it out too. A caller who brings a key knows better.
    """
    options, key = ctx.options, ctx.call.key
    if key is not None and key.was_made_for(request):
        return options is not None and options.idempotent is True
    return may_be_repeated(ctx.call, request)


def may_be_repeated(call: Call, request: HttpRequest) -> bool:
    """Say whether the server may see a request twice, by the options around it too."""
    options: Options | None = call.options
    if options is not None and options.idempotent is not None:
        return options.idempotent
    if request.method in IDEMPOTENT_METHODS:
        return True
    key, resources = call.key, call.resources
    if resources is not None and resources.key_stayed:
        # A redirect led it to a server that would not recognise it.
        return False
    if "Idempotency-Key" in request.headers:
        return True
    return key is not None and key.header in request.headers


@extensible
@dataclass(frozen=True, slots=True)
class RetryDecision:
    """The answer of a strategy: retry, no retry, or next.

    A strategy may also return a bare :class:`Backoff`, which means :meth:`retry`, or
    None, which means :meth:`next`. So you need a decision only to stop without asking
    the next strategy of a chain. Make it by these three methods. After Armeria's
    ``RetryDecision``.

    >>> class NeverTwicePaid(RetryStrategy):
    ...     def should_retry(self, ctx, cause):
    ...         if ctx.request.url.path == "/payments":
    ...             return RetryDecision.no_retry()
    ...         return RetryDecision.next()
    >>> strategy = NeverTwicePaid() | RetryStrategy.failsafe()
    """

    backoff: Backoff | None = None
    """How to wait for the next attempt; None unless this is :meth:`retry`."""

    is_next: bool = False
    """Whether the next strategy of a chain is to be asked."""

    def __post_init__(self) -> None:
        check.kind("backoff", self.backoff, Backoff, or_none=True)
        is_next: object = self.is_next
        if not isinstance(is_next, bool) or (is_next and self.backoff is not None):
            expected = "True or False, and False beside a backoff"
            raise bad_argument("is_next", is_next, expected)

    @staticmethod
    def retry(backoff: Backoff) -> RetryDecision:
        """Decide to make another attempt.

        Args:
            backoff: How to wait for it; keep it and return the same object each time.

        >>> RetryDecision.retry(Backoff.fixed(0.5))
        RetryDecision.retry(Backoff.fixed(0.5))
        """
        check.kind("backoff", backoff, Backoff)
        return RetryDecision(backoff)

    @staticmethod
    def no_retry() -> RetryDecision:
        """Decide to stop with the outcome; strategies further back are not asked.

        >>> RetryDecision.no_retry()
        RetryDecision.no_retry()
        """
        return _NO_RETRY

    @staticmethod
    def next() -> RetryDecision:
        """Leave it to the next strategy of a chain; at its end this is a stop.

        >>> RetryDecision.next()
        RetryDecision.next()
        """
        return _NEXT

    @staticmethod
    def of(answer: object) -> RetryDecision:
        """Return the decision for an answer of a strategy.

        Args:
            answer: A backoff means :meth:`retry`, None means :meth:`next`, a decision
                is returned as it is.

        Raises:
            ValueError: *answer* is none of these.

        >>> RetryDecision.of(None)
        RetryDecision.next()
        >>> RetryDecision.of(0.5)
        Traceback (most recent call last):
            ...
        ValueError: should_retry: 0.5 (expected: a Backoff, a RetryDecision or None)
        """
        if answer is None:
            return _NEXT
        if isinstance(answer, Backoff):
            return RetryDecision(answer)
        if isinstance(answer, RetryDecision):
            return answer
        expected = "a Backoff, a RetryDecision or None"
        raise bad_argument("should_retry", answer, expected)

    def __repr__(self) -> str:
        if self.backoff is not None:
            return f"RetryDecision.retry({self.backoff!r})"
        return f"RetryDecision.{'next' if self.is_next else 'no_retry'}()"


_NO_RETRY = RetryDecision()
_NEXT = RetryDecision(is_next=True)

RetryAnswer: TypeAlias = Backoff | RetryDecision | None
"""The answer of ``should_retry``, plain or awaited."""


Answers: TypeAlias = Iterator[tuple[object, RetryAnswer | Awaitable[RetryAnswer]]]
"""Pairs of a strategy and its answer; each strategy is asked when its pair is taken."""


def first_answer(answers: Answers) -> RetryAnswer | Awaitable[RetryAnswer]:
    """Return the first answer that is not "next"; None if all are.

    It takes no further answers after that one. If it meets an awaitable answer, it
    returns an awaitable.
    """
    for strategy, answer in answers:
        if isinstance(answer, Awaitable):
            return _first_awaited(strategy, answer, answers)
        if not decision_of(strategy, answer).is_next:
            return answer
    return None


async def _first_awaited(
    strategy: object, pending: Awaitable[RetryAnswer], rest: Answers
) -> RetryAnswer:
    for asked, given in chain(((strategy, pending),), rest):
        answer = await given if isinstance(given, Awaitable) else given
        if not decision_of(asked, answer).is_next:
            return answer
    return None


def decision_of(strategy: object, answer: RetryAnswer) -> RetryDecision:
    """Return the decision for an answer; the error for a wrong one says whose it is."""
    try:
        return RetryDecision.of(answer)
    except ValueError as error:
        asked: object = type(strategy)
        if isinstance(strategy, _OnStatus):
            asked = strategy.function
        error.add_note(f"returned by {name_without_arguments(asked)}")
        raise


class RetryStrategy(ABC):
    """Decides after each attempt whether to make another.

    Return a :class:`Backoff` to retry and None to stop. Keep the backoff and return the
    same object each time: the retrying client counts attempts by backoff object, and
    starts again at 1 with another one. The delays of a backoff made anew for each
    answer never grow. After Armeria's ``RetryStrategy``.

    ``a | b`` asks *b* when *a* abstains, that is when it returns None or
    :meth:`RetryDecision.next`. Either may be a :class:`RetryStrategyWithContent`.

    >>> class RetryOnConflict(RetryStrategy):
    ...     backoff = Backoff.of_default()
    ...
    ...     def should_retry(self, ctx, cause):
    ...         if is_timeout(cause) or is_unprocessed(cause):
    ...             return self.backoff
    ...         return self.backoff if ctx.log.response_status == 409 else None
    >>> RetryStrategy.on_unprocessed(Backoff.fixed(0.1)) | RetryStrategy.never()
    RetryStrategy.on_unprocessed(Backoff.fixed(0.1))
    """

    @abstractmethod
    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> RetryAnswer | Awaitable[RetryAnswer]:
        """Say whether to retry; plain or ``async``.

        Called after every attempt, the successful ones too. Its exceptions go to the
        caller.

        Args:
            ctx: The attempt; ``ctx.log`` has the status and the headers of its response
                and ``ctx.request`` its request.
            cause: The exception of a failed attempt, or None when there is a response.
                Call :func:`is_timeout` and :func:`is_unprocessed` instead of testing
                types.

        Returns:
            The backoff; None to leave it to the next strategy of a chain, or to stop
            with this outcome if there is none; or a :class:`RetryDecision`.
        """

    def __or__(self, other: RetryStrategy) -> RetryStrategy:
        if not isinstance(other, RetryStrategy):
            return NotImplemented
        return _chain(StrategyChain, self, other)

    @property
    def _answers_always(self) -> bool:
        """Whether the strategy always decides, so later ones are never asked."""
        return False

    @staticmethod
    def never() -> RetryStrategy:
        """Return the strategy that never retries.

        >>> RetryStrategy.never()
        RetryStrategy.never()
        """
        return _NEVER

    @staticmethod
    def on_unprocessed(backoff: Backoff | None = None) -> RetryStrategy:
        """Retry requests that the server surely has not seen, with any method.

        Args:
            backoff: How to wait; ``Backoff.of_default()`` unless given.

        >>> RetryStrategy.on_unprocessed(Backoff.fixed(0.5))
        RetryStrategy.on_unprocessed(Backoff.fixed(0.5))
        """
        return _OnUnprocessed(backoff_or_default(backoff))

    @staticmethod
    def on_server_error_status(backoff: Backoff | None = None) -> RetryStrategy:
        """Retry any 5xx and any failure, with any method, as Armeria does.

        An exception that was raised for an answer is judged by its status.

        A request that changes something may then be carried out twice. For such
        requests take :meth:`failsafe`.

        Args:
            backoff: How to wait; ``Backoff.of_default()`` unless given.

        >>> RetryStrategy.on_server_error_status(Backoff.fixed(0.5))
        RetryStrategy.on_server_error_status(Backoff.fixed(0.5))
        """
        return _OnServerErrorStatus(backoff_or_default(backoff))

    @staticmethod
    def on_status(
        function: Callable[[int | None, Exception | None], RetryAnswer],
    ) -> RetryStrategy:
        """Let a function of the status and the failure choose the backoff.

        It is not called for permanent failures (:data:`RetrySafety.NO`): those are
        never retried. An exception that was raised for an answer is its status.

        Args:
            function: Called with ``(status, None)`` or ``(None, cause)``; returns a
                backoff, the same object each time, None or a :class:`RetryDecision`.

        >>> backoff = Backoff.fixed(0.1)
        >>> strategy = RetryStrategy.on_status(
        ...     lambda status, cause: backoff if status == 409 else None
        ... )
        """
        if not callable(function):
            raise bad_argument("function", function, "a function of status and cause")
        return _OnStatus(function)

    @staticmethod
    def failsafe(backoff: Backoff | None = None) -> RetryStrategy:
        """Retry requests that may be sent again without harm.

        A request with an idempotent method, or with an ``Idempotency-Key`` header: on
        5xx, 429, 408 and any failure. Any other request: only if the server surely has
        not seen it. An exception that was raised for an answer is judged by its status.

        Args:
            backoff: How to wait; ``Backoff.of_default()`` unless given.

        >>> RetryStrategy.failsafe(Backoff.fixed(0.5))
        RetryStrategy.failsafe(Backoff.fixed(0.5))
        """
        return _Failsafe(backoff_or_default(backoff))


@dataclass(frozen=True, slots=True)
class _Never(RetryStrategy):
    def should_retry(self, ctx: ClientRequestContext, cause: Exception | None) -> None:
        return None

    def __repr__(self) -> str:
        return "RetryStrategy.never()"


_NEVER = _Never()


@dataclass(frozen=True, slots=True)
class _WithBackoff(RetryStrategy):
    """Retries wanted outcomes with one backoff."""

    _made_by: ClassVar[str]

    backoff: Backoff

    @abstractmethod
    def _wants(self, ctx: ClientRequestContext, cause: Exception | None) -> bool: ...

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> Backoff | None:
        return self.backoff if self._wants(ctx, cause) else None

    def __repr__(self) -> str:
        return f"RetryStrategy.{self._made_by}({self.backoff})"


class _OnUnprocessed(_WithBackoff):
    _made_by = "on_unprocessed"

    def _wants(self, ctx: ClientRequestContext, cause: Exception | None) -> bool:
        return cause is not None and safety_in(ctx, cause) is RetrySafety.YES


class _OnServerErrorStatus(_WithBackoff):
    _made_by = "on_server_error_status"

    def _wants(self, ctx: ClientRequestContext, cause: Exception | None) -> bool:
        if cause is None:
            return ctx.record.outcome.status in SERVER_ERRORS
        safety, status = safety_in(ctx, cause), failure_of(cause).status
        return safety is RetrySafety.YES or (
            safety is RetrySafety.MAYBE and (status is None or status in SERVER_ERRORS)
        )


@dataclass(frozen=True, slots=True)
class _OnStatus(RetryStrategy):
    function: Callable[[int | None, Exception | None], RetryAnswer]

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> RetryAnswer:
        if cause is None:
            return self.function(ctx.log.response_status, None)
        status = status_judged_in(ctx, cause)
        if status is not None:
            return self.function(status, None)
        if safety_in(ctx, cause) is RetrySafety.NO:
            return None
        return self.function(None, cause)

    def __repr__(self) -> str:
        return f"RetryStrategy.on_status({self.function!r})"


class _Failsafe(_WithBackoff):
    _made_by = "failsafe"

    def _wants(self, ctx: ClientRequestContext, cause: Exception | None) -> bool:
        if cause is None:
            return ctx.record.outcome.status in TRANSIENT and is_idempotent(ctx)
        safety = safety_in(ctx, cause)
        return safety is RetrySafety.YES or (
            safety is RetrySafety.MAYBE and is_idempotent(ctx)
        )


def asks_for_idempotence(strategies: Collection[object]) -> bool:
    """Say whether only what was never sent is retried, unless it may be sent twice."""
    kinds = {type(each) for each in strategies}
    return _Failsafe in kinds and kinds <= {_Failsafe, _OnUnprocessed}


class StrategyChain(Chain, RetryStrategy):
    """A chain of strategies, none of which looks at content."""

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> RetryAnswer | Awaitable[RetryAnswer]:
        answers = ((each, each.should_retry(ctx, cause)) for each in self.members)
        return first_answer(answers)


def backoff_or_default(backoff: Backoff | None) -> Backoff:
    """Return the given backoff, checked, or the default one."""
    check.kind("backoff", backoff, Backoff, or_none=True)
    return Backoff.of_default() if backoff is None else backoff


class RetryStrategyWithContent(ABC):
    """Decides, after each attempt, by the body of its response too.

    The client waits for the beginning of each body, also of a success, and keeps it in
    memory; the caller still gets the whole body, by ``read()`` and by streaming. If the
    status and the headers are enough, take :class:`RetryStrategy`. After Armeria's
    ``RetryStrategyWithContent``.

    If the body breaks off or stalls meanwhile, the attempt has failed: the strategy
    gets the failure as *cause*.

    ``a | b`` asks *b* when *a* abstains. Either may be a :class:`RetryStrategy`; a body
    is looked at only if a strategy that needs it is asked.

    >>> class RetryWhileLocked(RetryStrategyWithContent):
    ...     backoff = Backoff.of_default()
    ...     max_content_length = 4096
    ...
    ...     def should_retry(self, ctx, cause, content):
    ...         return self.backoff if content and b"locked" in content else None
    """

    max_content_length: int = MAX_CONTENT_LENGTH
    """Bytes of each body to look at, >= 1."""

    @abstractmethod
    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None, content: Content
    ) -> RetryAnswer | Awaitable[RetryAnswer]:
        """Say whether to retry; plain or ``async``.

        Called after every attempt, the successful ones too. Its exceptions go to the
        caller.

        Args:
            ctx: The attempt; ``ctx.log`` has the status and the headers of its response
                and ``ctx.request`` its request.
            cause: The exception of a failed attempt, or None when there is a response.
                Call :func:`is_timeout` and :func:`is_unprocessed` instead of testing
                types.
            content: The first ``max_content_length`` bytes of the body, decoded by its
                ``Content-Encoding`` as in aiohttp; empty without a body. None when
                there is a *cause*. Of a function of :func:`rpc`: what it returned.

        Returns:
            The backoff, the same object each time; None to leave it to the next
            strategy of a chain, or to stop with this outcome if there is none; or a
            :class:`RetryDecision`.
        """

    def _looks_at(self, ctx: ClientRequestContext) -> bool:
        """Say whether the strategy needs the body of a response."""
        return True

    @property
    def _answers_always(self) -> bool:
        """Whether the strategy always decides, so later ones are never asked."""
        return False

    def __or__(
        self, other: RetryStrategy | RetryStrategyWithContent
    ) -> RetryStrategyWithContent:
        if not isinstance(other, RetryStrategy | RetryStrategyWithContent):
            return NotImplemented
        return _chain(StrategyChainWithContent, self, other)

    def __ror__(self, other: RetryStrategy) -> RetryStrategyWithContent:
        if not isinstance(other, RetryStrategy):
            return NotImplemented
        return _chain(StrategyChainWithContent, other, self)


AnyStrategy: TypeAlias = RetryStrategy | RetryStrategyWithContent
"""A strategy of either kind."""

_Strategy = TypeVar("_Strategy", bound=AnyStrategy)


@dataclass(frozen=True, slots=True, repr=False)
class StrategyChainWithContent(Chain, RetryStrategyWithContent):
    """A chain of strategies, of which at least one looks at content."""

    max_content_length: int = field(init=False, repr=False, compare=False)
    """The longest beginning of the body that a member looks at."""

    def __post_init__(self) -> None:
        lengths = [
            member.max_content_length
            for member in self.members
            if isinstance(member, RetryStrategyWithContent)
        ]
        for length in lengths:
            check.integer("max_content_length", length, 1)
        object.__setattr__(self, "max_content_length", max(lengths))

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None, content: Content
    ) -> RetryAnswer | Awaitable[RetryAnswer]:
        return first_answer(self._answers(ctx, cause, content))

    def _answers(
        self, ctx: ClientRequestContext, cause: Exception | None, content: Content
    ) -> Answers:
        for member in self.members:
            if isinstance(member, RetryStrategyWithContent):
                start = content
                if isinstance(content, bytes):
                    start = content[: member.max_content_length]
                yield member, member.should_retry(ctx, cause, start)
            else:
                yield member, member.should_retry(ctx, cause)


def _chain(
    kind: Callable[[Any], _Strategy], left: AnyStrategy, right: AnyStrategy
) -> _Strategy:
    """Return a chain of some kind, or the only member that may ever retry."""
    members = chained(_that_may_retry(left), _that_may_retry(right))
    found: _Strategy = kind(members) if len(members) > 1 else [*members, _NEVER][0]
    return found


def _that_may_retry(strategy: AnyStrategy) -> tuple[AnyStrategy, ...]:
    members = members_of(strategy)
    return tuple(each for each in members if not isinstance(each, _Never))


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
