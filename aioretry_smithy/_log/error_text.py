"""Describe errors in few characters, credentials hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp

from .._body_text import ELLIPSIS
from .._masking.mask import beginning
from .._text import one_word, printable
from .aiohttp_texts import text_of

if TYPE_CHECKING:
    from .._masking.mask import Mask
    from .facts import LogFacts

_LONGEST_MESSAGE = 4096
_LONGEST_CAUSE = 72
_HEAD = 29


def describe_cause(log: LogFacts) -> str | None:
    """Return the class and the message of a log's failure, credentials hidden."""
    cause = log.response_cause
    return None if cause is None else describe_error(cause, log.mask)


def describe_error(error: BaseException, mask: Mask) -> str:
    """Return the class and the message of an error, credentials hidden."""
    name = type(error).__name__
    try:
        message = text_of(error)
        if isinstance(error, aiohttp.InvalidURL):
            # Of the beginning alone: the rest is cut.
            url = str(error.url)[:_LONGEST_MESSAGE]
            message = message.replace(url, one_word(url))
    except Exception:
        # Errors of aiohttp that a test makes by hand often lack attributes.
        return name
    message = masked_message(message, mask)
    return f"{name}: {message}" if message else name


def masked_message(message: str, mask: Mask) -> str:
    """Return the message of an error, credentials hidden; at most about 4 kB of it."""
    # Cut before all else: a server may have sent megabytes.
    shown = beginning(message, _LONGEST_MESSAGE)
    more = len(message) - len(shown)
    shown = mask.message(shown)
    if not more:
        return shown
    return f"{shown[:_LONGEST_MESSAGE]}{ELLIPSIS} ({more} more characters)"


def message_of(error: BaseException, mask: Mask) -> str:
    """Return the message of an error alone; without one, its class."""
    return describe_error(error, mask).removeprefix(f"{type(error).__name__}: ")


def excerpt(text: str, longest: int = _LONGEST_CAUSE) -> str:
    """Return at most so many printable characters, with an ellipsis if more follow."""
    # Cut before all else; it is masked by now.
    text = printable(text[: longest + 1])
    return text if len(text) <= longest else f"{text[: longest - 1]}{ELLIPSIS}"


def without_middle(text: str) -> str:
    """Shorten a text whose end says the most."""
    text = printable(text)
    if len(text) <= _LONGEST_CAUSE:
        return text
    return f"{text[: _HEAD - 1]}{ELLIPSIS}{text[_HEAD - _LONGEST_CAUSE :]}"
