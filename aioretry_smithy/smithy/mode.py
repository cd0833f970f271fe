"""The retry modes by name, and the strategies that they stand for."""

from __future__ import annotations

import warnings
from dataclasses import replace
from enum import StrEnum
from typing import TypedDict

from .._errors import bad_argument, is_finite
from .backoff import ExponentialRetryBackoffStrategy
from .profile import RetryProfile
from .strategies import (
    AdaptiveRetryStrategy,
    SimpleRetryStrategy,
    StandardRetryStrategy,
)

_LEGACY = "legacy"


class RetryMode(StrEnum):
    """A name for a strategy, for settings files and command lines.

    >>> RetryMode.of(" Adaptive ")
    <RetryMode.ADAPTIVE: 'adaptive'>
    """

    SIMPLE = "simple"
    """:class:`SimpleRetryStrategy`, with a backoff and a limit of attempts."""

    STANDARD = "standard"
    """:class:`StandardRetryStrategy`, with a quota for all retries as well."""

    ADAPTIVE = "adaptive"
    """:class:`AdaptiveRetryStrategy`, with a limit of the rate of requests as well."""

    @classmethod
    def of(cls, text: str) -> RetryMode:
        """Read the name of a mode.

        ``legacy``, a mode of other AWS tools, means the standard mode, with a
        :class:`RuntimeWarning` that says so.

        Args:
            text: The name, in upper or lower case; blanks around it are ignored.

        Raises:
            ValueError: There is no such mode.

        >>> RetryMode.of("off")
        Traceback (most recent call last):
            ...
        ValueError: text: 'off' (expected: simple, standard or adaptive)
        """
        return read_mode("text", text)

    def new_strategy(
        self,
        *,
        max_attempts: int | None = None,
        initial_backoff: float | None = None,
        max_backoff: float | None = None,
    ) -> SimpleRetryStrategy | StandardRetryStrategy:
        """Make a strategy of this mode, see :func:`new_strategy`.

        >>> RetryMode.STANDARD.new_strategy().max_attempts
        3
        """
        backoff = _checked_backoff(initial_backoff, max_backoff)
        if self is RetryMode.SIMPLE:
            simple_backoff = ExponentialRetryBackoffStrategy(**backoff)
            given = {} if max_attempts is None else {"max_attempts": max_attempts}
            return SimpleRetryStrategy(backoff_strategy=simple_backoff, **given)
        profile = replace(RetryProfile.V2_1, **backoff)
        # A server that throttles must not be asked again sooner than one that fails.
        if profile.backoff_scale_value > profile.throttling_backoff_scale_value:
            scale = profile.backoff_scale_value
            profile = replace(profile, throttling_backoff_scale_value=scale)
        kind = (
            AdaptiveRetryStrategy
            if self is RetryMode.ADAPTIVE
            else StandardRetryStrategy
        )
        return kind(profile=profile, max_attempts=max_attempts)


def new_strategy(
    mode: RetryMode | str,
    *,
    max_attempts: int | None = None,
    initial_backoff: float | None = None,
    max_backoff: float | None = None,
) -> SimpleRetryStrategy | StandardRetryStrategy:
    """Make a strategy from what the AWS SDKs let their users configure.

    Args:
        mode: A :class:`RetryMode`, or its name as :meth:`RetryMode.of` reads it.
        max_attempts: Attempts of one call, the first one included, >= 1; None for what
            is usual in the mode, 5 in the simple one and 3 otherwise.
        initial_backoff: Seconds before the first retry at most, >= 0; they double with
            each further one. None for 0.05, in the simple mode 0.025. After throttling
            it is 1 s, or *initial_backoff* where that is longer.
        max_backoff: Limit of the delays in seconds, >= 0 and >= *initial_backoff*; None
            for 20.

    Raises:
        ValueError: An argument is not as described.

    >>> strategy = new_strategy("adaptive", max_attempts=5, initial_backoff=0.2)
    >>> type(strategy).__name__, strategy.max_attempts
    ('AdaptiveRetryStrategy', 5)
    """
    return read_mode("mode", mode).new_strategy(
        max_attempts=max_attempts,
        initial_backoff=initial_backoff,
        max_backoff=max_backoff,
    )


def read_mode(name: str, text: object, *, stacklevel: int = 3) -> RetryMode:
    """Read the name of a mode, wherever it stood; refuse any other text.

    By default a warning points to the caller of the function that calls this one.
    """
    wanted = text.strip().lower() if isinstance(text, str) else None
    if wanted == _LEGACY:
        # Python's own filter keeps this to once for each place that asks.
        warnings.warn(
            f"{name}: the mode 'legacy' is not supported, 'standard' is used instead",
            RuntimeWarning,
            stacklevel=stacklevel,
        )
        return RetryMode.STANDARD
    for mode in RetryMode:
        if mode.value == wanted:
            return mode
    raise bad_argument(name, text, "simple, standard or adaptive")


class _BackoffSettings(TypedDict, total=False):
    backoff_scale_value: float
    max_backoff: float


def _checked_backoff(
    initial_backoff: float | None, max_backoff: float | None
) -> _BackoffSettings:
    """Return what is given, under the names that profiles and backoffs share."""
    given: _BackoffSettings = {}
    longest = RetryProfile.V2_1.max_backoff
    if max_backoff is not None:
        _check_seconds("max_backoff", max_backoff)
        given["max_backoff"] = longest = max_backoff
    if initial_backoff is not None:
        _check_seconds("initial_backoff", initial_backoff)
        if initial_backoff > longest:
            expected = f"<= max_backoff, {longest}"
            raise bad_argument("initial_backoff", initial_backoff, expected)
        given["backoff_scale_value"] = initial_backoff
    return given


def _check_seconds(name: str, value: object) -> None:
    if not is_finite(value) or value < 0:
        raise bad_argument(name, value, "seconds, finite and >= 0, or None")
