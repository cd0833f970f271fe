"""Decide which outcomes are worth another attempt, and how long to wait for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar

from .._backoff.backoff import Backoff
from .._errors import bad_argument
from .._failures.failure import SERVER_ERRORS, RetrySafety, failure_of, may_pass_by
from .._meant import call_it
from .._rules.conditions import Member, chained
from .decision import RetryAnswer, first_answer
from .given_up import safety_in, status_judged_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from .._call.call import Call
    from .._context.context import ClientRequestContext, Options
    from .._request.request import HttpRequest

_Member = TypeVar("_Member", bound=Member)

IDEMPOTENT_METHODS = frozenset(
    {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY"}
)
"""The methods that a server may see twice (RFC 9110, section 9.2.2, and QUERY)."""


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
        members = join(plain_members(self), plain_members(other))
        if not members:
            return _NEVER
        return members[0] if len(members) == 1 else StrategyChain(members)

    @property
    def _answers_always(self) -> bool:
        """Whether a strategy behind this one is never asked."""
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
class _OnFailure(RetryStrategy):
    """Retries with one backoff what is worth it."""

    _made_by: ClassVar[str]

    backoff: Backoff

    @abstractmethod
    def _wants_after_failure(
        self, ctx: ClientRequestContext, cause: Exception
    ) -> bool: ...

    @abstractmethod
    def _wants_after_status(
        self, ctx: ClientRequestContext, status: int | None
    ) -> bool: ...

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> Backoff | None:
        if cause is None:
            wants = self._wants_after_status(ctx, ctx.record.outcome.status)
        else:
            wants = self._wants_after_failure(ctx, cause)
        return self.backoff if wants else None

    def __repr__(self) -> str:
        return f"RetryStrategy.{self._made_by}({self.backoff})"


class _OnUnprocessed(_OnFailure):
    _made_by = "on_unprocessed"

    def _wants_after_failure(self, ctx: ClientRequestContext, cause: Exception) -> bool:
        return safety_in(ctx, cause) is RetrySafety.YES

    def _wants_after_status(
        self, ctx: ClientRequestContext, status: int | None
    ) -> bool:
        return False


class _OnServerErrorStatus(_OnFailure):
    _made_by = "on_server_error_status"

    def _wants_after_failure(self, ctx: ClientRequestContext, cause: Exception) -> bool:
        safety, status = safety_in(ctx, cause), failure_of(cause).status
        return safety is RetrySafety.YES or (
            safety is RetrySafety.MAYBE and (status is None or status in SERVER_ERRORS)
        )

    def _wants_after_status(
        self, ctx: ClientRequestContext, status: int | None
    ) -> bool:
        return status in SERVER_ERRORS


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


class _Failsafe(_OnFailure):
    _made_by = "failsafe"

    def _wants_after_failure(self, ctx: ClientRequestContext, cause: Exception) -> bool:
        safety = safety_in(ctx, cause)
        return safety is RetrySafety.YES or (
            safety is RetrySafety.MAYBE and is_idempotent(ctx)
        )

    def _wants_after_status(
        self, ctx: ClientRequestContext, status: int | None
    ) -> bool:
        may_pass = status is not None and may_pass_by(status)
        return may_pass and is_idempotent(ctx)


def asks_for_idempotence(strategies: Collection[object]) -> bool:
    """Say whether only what was never sent is retried, unless it may be sent twice."""
    kinds = {type(each) for each in strategies}
    return _Failsafe in kinds and kinds <= {_Failsafe, _OnUnprocessed}


@dataclass(frozen=True, slots=True)
class StrategyChain(RetryStrategy):
    """Strategies that are asked in turn: two or more, none of them a chain itself."""

    members: tuple[RetryStrategy, ...]

    def should_retry(
        self, ctx: ClientRequestContext, cause: Exception | None
    ) -> RetryAnswer | Awaitable[RetryAnswer]:
        answers = (each.should_retry(ctx, cause) for each in self.members)
        return first_answer(answers)

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.members))


def plain_members(strategy: RetryStrategy) -> tuple[RetryStrategy, ...]:
    """Return the strategies of a chain, or the one strategy."""
    return strategy.members if isinstance(strategy, StrategyChain) else (strategy,)


def join(left: tuple[_Member, ...], right: tuple[_Member, ...]) -> tuple[_Member, ...]:
    """Return the members of a chain of two, without those that never retry.

    Warnings point at the line with the ``|``: one frame above the caller.
    """
    return chained(_without_never(left), _without_never(right))


def _without_never(members: tuple[_Member, ...]) -> tuple[_Member, ...]:
    return tuple(member for member in members if not isinstance(member, _Never))


def backoff_or_default(backoff: Backoff | None) -> Backoff:
    """Return the given backoff, checked, or the default one."""
    if backoff is None:
        return Backoff.of_default()
    if not isinstance(backoff, Backoff):
        expected = f"a Backoff or None{call_it(backoff, Backoff)}"
        raise bad_argument("backoff", backoff, expected)
    return backoff


def is_idempotent(
    ctx: ClientRequestContext, request: HttpRequest | None = None
) -> bool:
    """Say whether the server may see the request twice, by method or by header.

    Args:
        ctx: The context of the request.
        request: What is sent, where a decorator may have changed it.
    """
    return may_be_repeated(ctx.call, request or ctx.request)


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
