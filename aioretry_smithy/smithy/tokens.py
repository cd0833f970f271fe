"""The tokens that our own strategies hand out, and the scopes that they are for."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from .._errors import bad_argument
from .._lru import BoundedMap
from .._shown import shown
from .shared import Shared

if TYPE_CHECKING:
    from collections.abc import Callable


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
    """Take a token back, once.

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


T = TypeVar("T")


class PerScope(Generic[T]):
    """One object for each scope, made on demand, or a given one for all of them.

    Threads may ask at once. Of 1024 scopes those stay that were asked for last.
    """

    given: T | None
    """The one for all, or None."""

    def __init__(self, factory: Callable[[], T], given: T | None = None) -> None:
        self.given = given
        self._made = BoundedMap(lambda scope: factory())
        self._lock = threading.Lock()

    def get(self, token_scope: str | None = None) -> T:
        """Return the object of a scope; None has no name, nor has an empty str."""
        check_token_scope(token_scope)
        if self.given is not None:
            return self.given
        with self._lock:
            return self._made.get(token_scope or "")


def check_token_scope(value: object) -> None:
    """Refuse an argument that names no scope."""
    if value is not None and not isinstance(value, str):
        raise bad_argument("token_scope", value, "a str, or None")
