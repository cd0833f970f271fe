"""Turn the texts of a command line into values, or say what is wrong with them."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from yarl import URL

from .. import Backoff
from .._masking.mask import DEFAULT_MASK
from .._retry.spec import parse_spec

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TIME = re.compile(r"[0-9.]+(ms|s)?")
_HEADER = re.compile(
    rf"({_TOKEN.pattern}):[ \t]*([^\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]*)"
)


def checked(convert: Callable[[str], _T]) -> Callable[[str], _T]:
    """Let argparse pass on what a ValueError says, which it would not."""

    def checked(text: str) -> _T:
        try:
            return convert(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return checked


def refuse(text: str, expected: str) -> NoReturn:
    """Say what would have been right."""
    raise argparse.ArgumentTypeError(f"{text!r} (expected: {expected})")


def url(text: str) -> URL:
    """Read a URL of HTTP, with a host."""
    with contextlib.suppress(ValueError):
        url = URL(text)
        host = url.host or ""
        # Finds hosts with an empty label, or one that is too long.
        host.encode("idna")
        is_host = host != "" and " " not in host
        if is_host and url.scheme in {"http", "https"} and text.isprintable():
            return url
    refuse(DEFAULT_MASK.text(text), "http:// or https://, and a host")


def method(text: str) -> str:
    """Read a method, in capital letters."""
    if not _TOKEN.fullmatch(text):
        refuse(text, "a method such as PUT")
    return text.upper()


def header(text: str) -> tuple[str, str]:
    """Read the name and the value of a header."""
    match = _HEADER.fullmatch(text)
    if match is None:
        refuse(text, "'Name: value'")
    return match[1], match[2]


def file(text: str) -> Path:
    """Read the name of a file to write."""
    if text == "-":
        refuse(text, "a file, not standard output")
    # What comes before it may cost something, and must not be done for nothing.
    path = Path(text)
    if "\0" in text or not _is_directory(path.parent) or _is_directory(path):
        refuse(text, "a file in a directory that exists")
    return path


def picture(text: str) -> Path:
    """Read the name of a picture to draw."""
    path = file(text)
    if path.suffix.lower() != ".svg":
        refuse(text, "a file whose name ends in .svg")
    return path


def _is_directory(path: Path) -> bool:
    # Path.is_dir() raises for names that are too long, and closed directories.
    return os.path.isdir(path)  # noqa: PTH112


def attempts(text: str) -> int:
    """Read a number of attempts."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        refuse(text, "an integer >= 1")
    return int(text)


def seconds(text: str) -> float:
    """Read a time."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        refuse(text, "seconds, finite and > 0")
    return seconds


def backoff(text: str) -> Backoff:
    """Read the waits between attempts, in seconds as the other options are.

    One number is a fixed wait. What looks like milliseconds is refused.
    """
    spec = f"fixed={text}" if _TIME.fullmatch(text) else text
    with warnings.catch_warnings(action="error"):
        try:
            backoff: Backoff = parse_spec(spec, Backoff, "s")
        except RuntimeWarning as warning:
            raise ValueError(*warning.args) from None
    return backoff


def outage(text: str) -> str | None:
    """Read an outage, or none."""
    return None if text == "none" else text
