"""The file in which AWS tools find their settings, one section for each profile."""

from __future__ import annotations

import shlex
from configparser import Error, RawConfigParser
from typing import TYPE_CHECKING, Any, NamedTuple

from .._text import encodable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


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
