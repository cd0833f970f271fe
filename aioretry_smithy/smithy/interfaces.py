"""Define the protocols, tokens, errors and delays of Smithy's retries."""

from __future__ import annotations

import math
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any, Protocol, TypeGuard, TypeVar, cast, runtime_checkable

from .. import _checks as check
from .._clock import chance, to_be_pickled
from .._errors import UnprocessedRequestError, bad_argument, is_finite, shown

# Who derives a dataclass from these may ask for the types of its fields.
from .._failures.hints import Fault  # noqa: TC001
from .._values import Shared, extensible

METHODS = (
    "acquire_initial_retry_token",
    "refresh_retry_token_for_retry",
    "record_success",
)
"""The methods of a strategy of Smithy's kind."""


class RetryToken(Protocol):
    """The token of an attempt of a call.

    Every object with the two attributes is one. A subclass declares them again, so that
    type checkers know them to be there, and is then made by keyword.

    Source: smithy-python, whose tokens are dataclasses, too.

    >>> from dataclasses import dataclass
    >>> @dataclass(kw_only=True)
    ... class MyToken(RetryToken):
    ...     retry_count: int
    ...     retry_delay: float
    ...     region: str
    >>> MyToken(retry_count=0, retry_delay=0.0, region="eu").region
    'eu'
    """

    retry_count: int
    """The attempts made before this one, 0 in an initial token."""

    retry_delay: float
    """Seconds to wait before the attempt."""


# Not as a decorator: type checkers would want the generated methods of every token.
dataclass(kw_only=True)(cast("Any", RetryToken))


@dataclass(slots=True, kw_only=True, eq=False)
class SimpleRetryToken(Shared):
    """The permission to make one attempt, given by a strategy.

    It is good for one refresh or one success, at the strategy that issued it. A copy
    of it is the token itself, and what :func:`dataclasses.replace` makes of it has the
    same one use. Do not make tokens yourself: no strategy would take them.
    """

    retry_count: int
    """The attempts made before this one, 0 in an initial token."""

    retry_delay: float
    """Seconds to wait before the attempt."""

    # Without what the server asked for; None where that is the same.
    _own_delay: float | None = field(default=None, repr=False)

    _issuer: object = field(default=None, repr=False)

    # Taking the one item, in any thread, uses the token. It is an argument, so that
    # dataclasses.replace() hands it on.
    _uses_left: list[str] = field(default_factory=lambda: ["use"], repr=False)

    @property
    def attempt_count(self) -> int:
        """The number of the attempt that the token is for, from 1."""
        return self.retry_count + 1


@dataclass(slots=True, kw_only=True, eq=False)
class StandardRetryToken(SimpleRetryToken):
    """The permission to make one attempt, from a strategy that pays for retries."""

    quota_acquired: int = 0
    """Tokens of the quota that this attempt cost, 0 in an initial token."""

    token_scope: str | None = None
    """The scope whose quota was asked."""


def own_delay_of(token: object) -> float | None:
    """Return the delay in a token without what a server asked for; None if unknown."""
    if not isinstance(token, SimpleRetryToken):
        return None
    return token.retry_delay if token._own_delay is None else token._own_delay


_T = TypeVar("_T", bound=SimpleRetryToken)


def use_token(name: str, token: object, kind: type[_T], issuer: object) -> _T:
    """Return a token of this issuer that is used for the first time; else raise.

    Raises:
        TypeError: It is no such token.
        ValueError: Another strategy has issued it, or it was used before.
    """
    if not isinstance(token, kind):
        raise TypeError(f"{name}: {shown(token)} (expected: a {kind.__name__})")
    if token._issuer is not issuer:
        raise bad_argument(name, token, "issued by this strategy")
    try:
        token._uses_left.pop()
    except IndexError:
        raise bad_argument(name, token, "not used before") from None
    return token


class RetryBackoffStrategy(Protocol):
    """Computes how long to wait, from the number of the retry alone."""

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Return the seconds to wait before an attempt.

        Args:
            retry_attempt: The number of the retry, from 1; 0 is the initial attempt.
        """


@runtime_checkable
class RetryStrategy(Protocol):
    """Decides about retries by handing out tokens; plain or ``async``.

    One token for each attempt: an initial one before the first, a renewed one before
    each retry. A strategy that has none to give raises a :class:`RetryError`. What a
    call needs to remember is in its tokens, so one strategy serves any number of calls.

    Source: smithy-python, whose methods are ``async`` today and were plain in its
    design document. Both are welcome.
    """

    backoff_strategy: RetryBackoffStrategy
    """The strategy that computes the delays in the tokens."""

    max_attempts: int
    """Attempts of a call, including the first."""

    def acquire_initial_retry_token(
        self, *, token_scope: str | None = None
    ) -> RetryToken | Awaitable[RetryToken]:
        """Return the token of the first attempt.

        Args:
            token_scope: What calls have in common, where a strategy keeps several
                kinds of calls apart. The retrying client passes ``host:port``.

        Raises:
            RetryError: There is none. The call makes one attempt and no retry.
        """

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: Any, error: Exception
    ) -> RetryToken | Awaitable[RetryToken]:
        """Return the token of the next attempt.

        Args:
            token_to_renew: The token of the attempt that failed.
            error: What it failed with. Read it with :class:`RetryInfo`.

        Raises:
            RetryError: There is to be no further attempt.
        """

    def record_success(self, *, token: Any) -> Awaitable[None] | None:
        """Take back the token of an attempt that succeeded."""


@runtime_checkable
class ErrorRetryInfo(Protocol):
    """An error with retry information.

    These are the attributes of smithy-python's design document. An error may have
    ``is_timeout_error`` as well, which says that time ran out.
    """

    is_retry_safe: bool | None = None
    """True allows a retry, False forbids it; None if it is unknown."""

    retry_after: float | None = None
    """Seconds that the server asks to wait."""

    is_throttling_error: bool = False
    """Whether the server complains of too many requests."""


@runtime_checkable
class HasFault(Protocol):
    """An error with a ``fault``: the client's or the server's."""

    fault: Fault
    """The side that is at fault."""


class TokenSource(Protocol):
    """The three methods that the retrying client calls, for tokens of any class.

    A :class:`RetryStrategy` is one; so is a strategy without the attributes, or with
    tokens that are frozen.
    """

    def acquire_initial_retry_token(self, *, token_scope: str | None = None) -> object:
        """Return the token of the first attempt, or an awaitable of it."""

    def refresh_retry_token_for_retry(
        self, *, token_to_renew: Any, error: Exception
    ) -> object:
        """Return the token of the next attempt, or an awaitable of it."""

    def record_success(self, *, token: Any) -> object:
        """Take back the token of an attempt that succeeded."""


def is_smithy_strategy(strategy: object) -> TypeGuard[TokenSource]:
    """Say whether an object is a strategy of Smithy's kind: it has the three methods.

    >>> is_smithy_strategy(RetryInfo())
    False
    """
    methods = (getattr(strategy, name, None) for name in METHODS)
    return all(map(callable, methods)) and not isinstance(strategy, type)


class RetryError(Exception):
    """No retry token was available.

    Where smithy-python is in use too, instances are also of its class of this name, so
    that its loops understand the strategies of this library.

    Args:
        message: Why there is none.
        retry_after: Seconds after which there may be one again, or None.

    >>> RetryError("the quota is exhausted", retry_after=1.5).retry_after
    1.5
    """

    retry_after: float | None
    """Seconds after which there may be a token again, or None."""

    def __new__(cls, *args: object, **options: object) -> RetryError:
        """Make an instance of smithy-python's class, too, if loaded."""
        kind: Any = cls
        theirs = _retry_error_of_smithy_python()
        if theirs is not None and not issubclass(kind, theirs):
            kind = _known_to_both(kind, theirs)
        error: RetryError = super().__new__(kind, *args)
        return error

    def __init__(self, message: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class BackoffExhaustedError(RetryError):
    """The :class:`.Backoff` behind a backoff strategy has no further delay."""


class CapacityNotAvailableError(UnprocessedRequestError):
    """The rate limiter grants no attempt now, and the strategy does not wait.

    Raised for the first attempt of a call, by an :class:`AdaptiveRetryStrategy` with
    ``fail_fast=True``. Nothing was sent.

    Args:
        retry_after: Seconds until an attempt may be granted.

    Source: botocore's class of this name.

    >>> print(CapacityNotAvailableError(1.9))
    the rate limiter grants no attempt for 1.900 s
    """

    retry_after: float
    """Seconds from the refusal until an attempt may be granted."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(retry_after)
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"the rate limiter grants no attempt for {self.retry_after:.3f} s"


@dataclass(kw_only=True, eq=False, repr=False)
class CallError(Exception):
    """A failed attempt, in the form that a Smithy strategy is given.

    The retrying client makes it of a response or of an exception, which is then its
    ``__cause__``. It is never raised to the caller. It has everything that
    :class:`ErrorRetryInfo` and :class:`HasFault` ask for. A subclass may be a dataclass
    with other defaults.

    Args:
        message: What happened.
        fault: Whose fault it is.
        is_retry_safe: True allows a retry, False forbids it.
        retry_after: Seconds that the server asks to wait.
        is_throttling_error: Whether the server complains of too many requests.
        is_timeout_error: Whether time ran out.
        status: The status of the response, if there was one.
        code: The error code that the response carries, without namespace and URL.

    Source: smithy-python's class of this name.

    >>> CallError("busy", fault="server", is_throttling_error=True).message
    'busy'
    """

    message: str = field(default="", kw_only=False)
    """The message of the error."""

    fault: Fault = None
    """The side that is at fault."""

    is_retry_safe: bool | None = None
    """True allows a retry, False forbids it; None if it is unknown."""

    retry_after: float | None = None
    """Seconds that the server asks to wait."""

    is_throttling_error: bool = False
    """Whether the server complains of too many requests."""

    is_timeout_error: bool = False
    """Whether time ran out."""

    status: int | None = None
    """The status of the response, or None after an exception."""

    code: str | None = None
    """The error code that the response carries."""

    def __post_init__(self) -> None:
        super().__init__(self.message)


@dataclass(kw_only=True, eq=False, repr=False)
class ModeledError(CallError):
    """An error that the model of a service describes, for a loop of your own.

    The same as a :class:`CallError`, but for ``fault``: it is the client's. So there is
    no retry unless ``is_retry_safe`` is True, or the error throttles or timed out.

    Source: smithy-python's class of this name.

    >>> from aioretry_smithy.smithy import RetryInfo
    >>> RetryInfo.of(ModeledError("no such order")).allows_retry
    False
    """

    fault: Fault = "client"


@dataclass(kw_only=True, eq=False, repr=False)
class ClientTimeoutError(CallError):
    """The client's time for an answer ran out; for a loop of your own.

    The same as a :class:`CallError` with other defaults: time ran out, for the client,
    and a retry is allowed.

    Source: smithy-python's class of this name.

    >>> from aioretry_smithy.smithy import RetryInfo
    >>> RetryInfo.of(ClientTimeoutError()).allows_retry
    True
    """

    fault: Fault = "client"
    is_retry_safe: bool | None = True
    is_timeout_error: bool = True


def refusals() -> tuple[type[Exception], ...]:
    """Return what a strategy may raise to say no, for an ``except`` clause."""
    theirs = _retry_error_of_smithy_python()
    return (RetryError,) if theirs is None else (RetryError, theirs)


def _retry_error_of_smithy_python() -> Any:
    # It is not a dependency; code that has raised its class has imported it.
    return getattr(sys.modules.get("smithy_core.exceptions"), "RetryError", None)


@cache
def _known_to_both(ours: Any, theirs: Any) -> type[RetryError]:
    def reduce(self: RetryError) -> tuple[object, ...]:
        return ours, self.args, vars(self)

    namespace = {"__module__": ours.__module__, "__reduce__": reduce}
    return type(ours.__name__, (ours, theirs), namespace)


# A chain of decorrelated delays has long forgotten how it began by then; the steps of
# a longer one would only cost time.
_LONGEST_CHAIN = 128


class ExponentialBackoffJitterType(Enum):
    """Choose the jitter of an exponential delay.

    With ``c = min(backoff_scale_value * 2 ** (n - 1), max_backoff)`` before retry *n*,
    and ``r`` drawn from [0, 1):
    """

    DEFAULT = 1
    """``(0.5 + 0.5 * r) * c``, known as equal jitter."""

    NONE = 2
    """``c``, no jitter at all."""

    FULL = 3
    """``r * c``."""

    DECORRELATED = 4
    """``d = min(backoff_scale_value + 3 * r * d, max_backoff)``, done *n* times.

    ``d`` is *backoff_scale_value* at the start, and each step draws its own ``r``.
    """


@extensible
@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialRetryBackoffStrategy:
    """Computes delays that double, up to a limit, with jitter.

    It has no state, so one object serves any number of calls at once.

    Args:
        backoff_scale_value: Seconds before the first retry without jitter, >= 0.
        max_backoff: Limit in seconds, >= 0, applied before the jitter.
        jitter_type: The formula, see :class:`ExponentialBackoffJitterType`.
        random: Returns numbers in [0, 1).

    Raises:
        ValueError: An argument is not as described.

    Source: smithy-python. There ``DECORRELATED`` remembers the last delay of any call;
    here it is computed anew from the number of the retry.

    >>> backoff = ExponentialRetryBackoffStrategy(
    ...     backoff_scale_value=1, jitter_type=ExponentialBackoffJitterType.NONE
    ... )
    >>> [backoff.compute_next_backoff_delay(n) for n in (0, 1, 2, 3, 10)]
    [0.0, 1.0, 2.0, 4.0, 20.0]
    """

    backoff_scale_value: float = 0.025
    max_backoff: float = 20.0
    jitter_type: ExponentialBackoffJitterType = ExponentialBackoffJitterType.DEFAULT
    random: Callable[[], float] = field(default=chance, repr=False)

    def __post_init__(self) -> None:
        for name in ("backoff_scale_value", "max_backoff"):
            check.not_negative(name, getattr(self, name))
        check.kind("jitter_type", self.jitter_type, ExponentialBackoffJitterType)
        if not callable(self.random):
            raise bad_argument("random", self.random, "a callable that returns [0, 1)")
        object.__setattr__(self, "random", to_be_pickled(self.random))

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Return the seconds to wait before an attempt.

        Args:
            retry_attempt: The number of the retry, from 1; 0 is the initial attempt,
                before which there is no wait.

        Raises:
            ValueError: *retry_attempt* is no integer >= 0.
        """
        check.integer("retry_attempt", retry_attempt, 0)
        if retry_attempt == 0:
            return 0.0
        if self.jitter_type is ExponentialBackoffJitterType.DECORRELATED:
            return self._decorrelated(retry_attempt)
        capped = self._capped(retry_attempt)
        if self.jitter_type is ExponentialBackoffJitterType.NONE:
            return capped
        if self.jitter_type is ExponentialBackoffJitterType.FULL:
            return self.random() * capped
        return (0.5 + 0.5 * self.random()) * capped

    def _capped(self, retry_attempt: int) -> float:
        try:
            delay = math.ldexp(self.backoff_scale_value, retry_attempt - 1)
        except OverflowError:
            return float(self.max_backoff)
        return min(delay, float(self.max_backoff))

    def _decorrelated(self, retry_attempt: int) -> float:
        scale, longest = float(self.backoff_scale_value), float(self.max_backoff)
        delay = scale
        for _ in range(min(retry_attempt, _LONGEST_CHAIN)):
            delay = min(scale + 3 * (self.random() * delay), longest)
        return delay


def check_backoff_strategy(name: str, value: object) -> None:
    """Refuse an argument that cannot compute delays."""
    method = getattr(value, "compute_next_backoff_delay", None)
    if isinstance(value, type) or not callable(method):
        expected = "an object with compute_next_backoff_delay(); see from_backoff()"
        raise bad_argument(name, value, expected)


def ask_for_delay(
    backoff_strategy: RetryBackoffStrategy,
    retry_attempt: int,
    error: Exception | None = None,
) -> float:
    """Ask a backoff strategy for a delay, and check the answer.

    Raises:
        BackoffExhaustedError: It has no further delay. Raised from *error*.
        ValueError: What it returned is no delay.
    """
    try:
        delay: object = backoff_strategy.compute_next_backoff_delay(retry_attempt)
    except BackoffExhaustedError as exhausted:
        raise exhausted from error
    if not is_finite(delay) or delay < 0:
        expected = "seconds, finite and >= 0"
        raise bad_argument("compute_next_backoff_delay", delay, expected)
    return float(delay)
