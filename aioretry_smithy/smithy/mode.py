"""The retry modes by name, and the strategies that they and the environment ask for."""

from __future__ import annotations

import os
import shlex
import threading
import warnings
from collections.abc import Mapping
from configparser import Error, RawConfigParser
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict, cast

from .. import _checks as check
from .._errors import bad_argument, positive_integer, shown
from .._text.printable import encodable
from .._values import Shared, extensible
from .interfaces import ExponentialRetryBackoffStrategy, is_smithy_strategy
from .limiters import RetryProfile
from .strategies import (
    AdaptiveRetryStrategy,
    SimpleRetryStrategy,
    StandardRetryStrategy,
)

if TYPE_CHECKING:
    from .interfaces import RetryStrategy


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
        if self is RetryMode.ADAPTIVE:
            return AdaptiveRetryStrategy(profile=profile, max_attempts=max_attempts)
        return StandardRetryStrategy(profile=profile, max_attempts=max_attempts)


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
    if wanted is None or wanted not in [*RetryMode]:
        raise bad_argument(name, text, "simple, standard or adaptive")
    return RetryMode(wanted)


class _BackoffSettings(TypedDict, total=False):
    backoff_scale_value: float
    max_backoff: float


def _checked_backoff(
    initial_backoff: float | None, max_backoff: float | None
) -> _BackoffSettings:
    """Return what is given, under the names that profiles and backoffs share."""
    check.not_negative("max_backoff", max_backoff, or_none=True)
    check.not_negative("initial_backoff", initial_backoff, or_none=True)
    given: _BackoffSettings = {}
    longest = RetryProfile.V2_1.max_backoff
    if max_backoff is not None:
        given["max_backoff"] = longest = max_backoff
    if initial_backoff is not None:
        if initial_backoff > longest:
            expected = f"<= max_backoff, {longest}"
            raise bad_argument("initial_backoff", initial_backoff, expected)
        given["backoff_scale_value"] = initial_backoff
    return given


RetryStrategyType: TypeAlias = Literal["simple", "standard", "adaptive"]
"""The name of a :class:`RetryMode`."""


@extensible
@dataclass(frozen=True, slots=True, kw_only=True)
class RetryStrategyOptions:
    """The options from which a :class:`RetryStrategyResolver` makes a strategy.

    Args:
        retry_mode: A :class:`RetryMode`, or its name.
        max_attempts: Attempts of one call, the first one included, >= 1; None for what
            is usual in the mode.

    Raises:
        ValueError: An argument is not as described.

    Source: smithy-python's class of this name.

    >>> RetryStrategyOptions(max_attempts=5)
    RetryStrategyOptions(retry_mode='standard', max_attempts=5)
    """

    retry_mode: RetryStrategyType = "standard"
    """The name of the mode."""

    max_attempts: int | None = None
    """Attempts of one call, the first one included, or None."""

    def __post_init__(self) -> None:
        # A warning comes here, and not again at each use.
        mode = read_mode("retry_mode", self.retry_mode, stacklevel=4)
        object.__setattr__(self, "retry_mode", mode.value)
        check.integer("max_attempts", self.max_attempts, 1, or_none=True)


class RetryStrategyResolver(Shared):
    """Makes retry strategies; equal settings share a strategy.

    So clients with the same settings share a quota. It keeps the 128 strategies that
    were asked for last. Threads may share one; a copy of it is the resolver itself.

    Source: smithy-python's class of this name.

    >>> async def resolve():
    ...     resolver = RetryStrategyResolver()
    ...     options = RetryStrategyOptions(max_attempts=5)
    ...     first = await resolver.resolve_retry_strategy(retry_strategy=options)
    ...     again = await resolver.resolve_retry_strategy(retry_strategy=options)
    ...     return first.max_attempts, first is again
    >>> asyncio.run(resolve())
    (5, True)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._new_strategy = lru_cache(maxsize=128)(_new_strategy)

    async def resolve_retry_strategy(
        self,
        *,
        retry_strategy: RetryStrategy | RetryStrategyOptions | None,
        retry_mode: RetryStrategyType | None = None,
        max_attempts: int | None = None,
    ) -> RetryStrategy:
        """Return the strategy that is given, or the one for the settings.

        Args:
            retry_strategy: A strategy, which is returned as it is, or settings. None:
                the other two arguments are the settings.
            retry_mode: The mode if *retry_strategy* is None; the standard one by
                default.
            max_attempts: The attempts of one call if *retry_strategy* is None.

        Raises:
            TypeError: *retry_strategy* is none of these.
            ValueError: One of the others is not as :class:`RetryStrategyOptions` wants
                it.
        """
        options: object = retry_strategy
        if is_smithy_strategy(options):
            return cast("RetryStrategy", retry_strategy)
        if options is None:
            mode = RetryMode.STANDARD
            if retry_mode is not None:
                mode = read_mode("retry_mode", retry_mode)
            options = RetryStrategyOptions(
                retry_mode=mode.value, max_attempts=max_attempts
            )
        if not isinstance(options, RetryStrategyOptions):
            # In smithy-python's words, which its users may look for.
            expected = "RetryStrategy, RetryStrategyOptions, or None"
            raise TypeError(f"retry_strategy must be {expected}, not {shown(options)}")
        # Two threads that ask at once are to get the same one.
        with self._lock:
            return self._new_strategy(options)


def _new_strategy(options: RetryStrategyOptions) -> RetryStrategy:
    mode = RetryMode(options.retry_mode)
    return mode.new_strategy(max_attempts=options.max_attempts)


_KEYS = {"AWS_RETRY_MODE": "retry_mode", "AWS_MAX_ATTEMPTS": "max_attempts"}


def strategy_from_env(
    environ: Mapping[str, str] | None = None,
) -> SimpleRetryStrategy | StandardRetryStrategy:
    """Make the strategy that the environment asks for, or the AWS profile file.

    ``AWS_RETRY_MODE`` is a :class:`RetryMode`, and ``AWS_MAX_ATTEMPTS`` the attempts of
    one call, the first one included. If one of the two is not set, ``retry_mode`` or
    ``max_attempts`` of the profile counts: the one that ``AWS_PROFILE`` names, or
    ``default``, in the file that ``AWS_CONFIG_FILE`` names, or ``~/.aws/config``. If
    that does not have it either, the mode is standard, the attempts those of the mode.

    An empty value counts as not set. The mode ``legacy`` of other AWS tools means
    standard, with a :class:`RuntimeWarning`. A file that does not exist, or does not
    have the profile, changes nothing.

    Args:
        environ: The variables; by default those of the process. ``~`` is their ``HOME``
            or ``USERPROFILE``.

    Raises:
        ValueError: A value or the file cannot be read, or *environ* is no mapping. The
            message names the variable, or the file, the section and the key.

    Source: botocore, which reads the same file in the same way.

    >>> strategy_from_env({"AWS_MAX_ATTEMPTS": "5"}).max_attempts
    5
    """
    variables: object = os.environ if environ is None else environ
    if not isinstance(variables, Mapping):
        raise bad_argument("environ", environ, "a mapping, or None")
    (mode_name, mode), (attempts_name, attempts) = _find_settings(variables)
    found = read_mode(mode_name, mode) if mode else RetryMode.STANDARD
    max_attempts = positive_integer(attempts_name, attempts) if attempts else None
    return found.new_strategy(max_attempts=max_attempts)


def _find_settings(variables: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return the location and the text of each setting; empty if not set."""
    found = [(variable, _read(variables, variable)) for variable in _KEYS]
    if all(text for _, text in found):
        return found
    path = _config_file(variables)
    profile = _read(variables, "AWS_PROFILE") or "default"
    section = None if path is None else read_profile(path, profile)
    if section is None:
        return found
    return [
        (variable, text)
        if text
        else (f"{section.place} {key}", section.values.get(key, "").strip())
        for (variable, text), key in zip(found, _KEYS.values(), strict=True)
    ]


def _config_file(variables: Mapping[str, object]) -> Path | None:
    text = _read(variables, "AWS_CONFIG_FILE") or "~/.aws/config"
    # Two signs would be made one, as nowhere else in a path.
    text = Template(text.replace("$$", "$$$$")).safe_substitute(variables)
    if text[:2] in {"~/", "~\\"}:
        home = _read(variables, "HOME") or _read(variables, "USERPROFILE")
        return Path(home, text[2:]) if home else None
    return Path(text)


def _read(variables: Mapping[str, object], name: str) -> str:
    text = variables.get(name, "")
    if not isinstance(text, str):
        raise bad_argument(name, text, "a str")
    return text.strip()


class ProfileSection(NamedTuple):
    """The settings of one profile in a file."""

    place: str
    """The file and the section, for an error."""

    values: Mapping[str, str]
    """The unparsed settings."""


def read_profile(path: Path, profile: str) -> ProfileSection | None:
    """Return the section of a profile, if there is one.

    A file that is not there or cannot be opened has none, as with botocore. ``default``
    stands under ``[default]``, any other profile under ``[profile name]``. Of two such
    sections the later one holds.

    Raises:
        ValueError: The file is there, and is no such file.
    """
    parser = RawConfigParser()
    try:
        # A device or a pipe could keep us waiting.
        if not path.is_file():
            return None
        # Bytes that are not UTF-8 are in a comment or a name; Windows writes a mark.
        with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
            parser.read_file(file)
    except OSError:
        return None
    except Error as error:
        raise _unreadable(path, error) from None
    section = None
    for name in parser.sections():
        if _profile_of(name) == profile:
            section = ProfileSection(f"{path} [{name}]", parser[name])
    return section


def _profile_of(section: str) -> str | None:
    if section == "default":
        return section
    try:
        words = shlex.split(section)
    except ValueError:
        return None
    return words[1] if len(words) == 2 and words[0] == "profile" else None


def _unreadable(path: Path, error: Any) -> ValueError:
    # The parser's own message quotes the line, which may well hold a secret key.
    line = getattr(error, "lineno", None) or error.errors[0][0]
    expected = "a [section], or key = value in one, each of them once"
    return ValueError(encodable(f"{path}: line {line} (expected: {expected})"))
