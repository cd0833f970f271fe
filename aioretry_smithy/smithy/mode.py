"""The retry modes by name, as the environment of AWS tools gives them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum

from .._errors import bad_argument
from .adaptive import AdaptiveRetryStrategy
from .simple import SimpleRetryStrategy
from .standard import StandardRetryStrategy

_MODE_VARIABLE = "AWS_RETRY_MODE"
_ATTEMPTS_VARIABLE = "AWS_MAX_ATTEMPTS"

_MODES = "simple, standard or adaptive"


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

        Args:
            text: The name; blanks around it and capital letters make no difference.

        Raises:
            ValueError: There is no such mode.

        >>> RetryMode.of("off")
        Traceback (most recent call last):
            ...
        ValueError: text: 'off' (expected: simple, standard or adaptive)
        """
        return _mode("text", text)

    def new_strategy(
        self, *, max_attempts: int | None = None
    ) -> SimpleRetryStrategy | StandardRetryStrategy:
        """Make a strategy of this mode.

        Args:
            max_attempts: Attempts of one call, the first one included, >= 1; None for
                what is usual in the mode.

        Raises:
            ValueError: *max_attempts* is not as described.

        >>> RetryMode.STANDARD.new_strategy().max_attempts
        3
        """
        if self is RetryMode.ADAPTIVE:
            return AdaptiveRetryStrategy(max_attempts=max_attempts)
        if self is RetryMode.STANDARD:
            return StandardRetryStrategy(max_attempts=max_attempts)
        if max_attempts is None:
            return SimpleRetryStrategy()
        return SimpleRetryStrategy(max_attempts=max_attempts)


def strategy_from_env(
    environ: Mapping[str, str] | None = None,
) -> SimpleRetryStrategy | StandardRetryStrategy:
    """Make the strategy that the environment asks for.

    ``AWS_RETRY_MODE`` is a :class:`RetryMode`, standard if it is not set;
    ``AWS_MAX_ATTEMPTS`` is the attempts of one call, the first one included. A variable
    that is empty is not set. The mode ``legacy`` of other AWS tools is not supported.

    Args:
        environ: The variables; by default those of the process.

    Raises:
        ValueError: One of the two cannot be read, or *environ* is no mapping.

    >>> strategy_from_env({"AWS_MAX_ATTEMPTS": "5"}).max_attempts
    5
    """
    variables: object = os.environ if environ is None else environ
    if not isinstance(variables, Mapping):
        raise bad_argument("environ", environ, "a mapping, or None")
    name = _read(variables, _MODE_VARIABLE)
    mode = _mode(_MODE_VARIABLE, name) if name else RetryMode.STANDARD
    return mode.new_strategy(max_attempts=_max_attempts(variables))


def _mode(name: str, text: object) -> RetryMode:
    wanted = text.strip().lower() if isinstance(text, str) else None
    for mode in RetryMode:
        if mode.value == wanted:
            return mode
    if wanted == "legacy":
        raise bad_argument(name, text, f"{_MODES}; legacy is not supported")
    raise bad_argument(name, text, _MODES)


def _read(environ: Mapping[str, object], name: str) -> str:
    text = environ.get(name, "")
    if not isinstance(text, str):
        raise bad_argument(name, text, "a str")
    return text.strip()


def _max_attempts(environ: Mapping[str, object]) -> int | None:
    text = _read(environ, _ATTEMPTS_VARIABLE)
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise bad_argument(_ATTEMPTS_VARIABLE, text, "a positive integer")
    return int(text)
