"""The strategy that the environment and the AWS profile file ask for."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from configparser import Error, RawConfigParser
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, NamedTuple

from .._errors import bad_argument, positive_integer
from .._text import encodable
from .mode import RetryMode, read_mode

if TYPE_CHECKING:
    from .strategies import SimpleRetryStrategy, StandardRetryStrategy

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
    """Return of each setting where it stands, and its text, empty if nowhere."""
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
    """The settings, as they stand there."""


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
