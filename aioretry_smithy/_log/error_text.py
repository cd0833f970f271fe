"""Describe errors in few characters, without credentials and the data of others.

It quotes bytes of a server that it cannot read, the whole head of an answer that broke
off, and the key of a connection, which has the password of a proxy.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

import aiohttp
from aiohttp import http
from aiohttp.http_exceptions import TransferEncodingError

from .._text.mask import Mask, beginning
from .._text.printable import ELLIPSIS, one_word, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from .facts import LogFacts


_UNSENT: Final = "Failed to send bytes into the underlying connection"
_OF_CHUNKS: Final = frozenset(
    {
        "Bad chunk-size line ending, expected CRLF",
        "Bad trailer line ending, expected CRLF",
        "Chunk size mismatch: expected CRLF after chunk data",
        "Not enough data to satisfy transfer length header.",
    }
)
"""What is said of chunks without a word of theirs."""

# What a parser says of the bytes that it quotes behind.
_BEFORE_QUOTE: Final = re.compile(
    r"""(?s)(?P<words>[^'"]*?):?\s*(?:bytearray\()?b?['"].*"""
)


def text_of(error: BaseException) -> str:
    """Return the message of an error, of aiohttp's own in words that quote nothing.

    Raises:
        Exception: The error cannot say its message.
    """
    for kind, words_of in _WORDS.items():
        if isinstance(error, kind):
            words = words_of(error)
            if words is not None:
                return words
    return str(error)


def _of_disconnect(error: aiohttp.ServerDisconnectedError) -> str | None:
    head = error.message
    if isinstance(head, str):
        return None
    words = "Server disconnected in the head"
    if not isinstance(head, http.RawResponseMessage):
        return words
    major, minor = head.version
    return f"{words}, HTTP/{major}.{minor} {head.code}"


def _of_bytes(error: BaseException, what: str) -> str | None:
    words = _words_of_parser(error.__cause__)
    return None if words is None else f"the {what} cannot be read: {words}"


def _of_connection(error: aiohttp.ClientConnectionError) -> str | None:
    if not str(error).startswith(_UNSENT):
        return None
    cause, words = error.__cause__, "Failed to send the body"
    if cause is None:
        return words
    text = text_of(cause)
    return f"{words}: {type(cause).__name__}{f': {text}' if text else ''}"


def _words_of_parser(error: BaseException | None) -> str | None:
    """Return a parser's message without the quoted bytes; None if nothing is quoted."""
    if not isinstance(error, http.HttpProcessingError):
        return None
    if isinstance(error.__cause__, http.HttpProcessingError):
        # It was made anew of another one.
        return _words_of_parser(error.__cause__)
    if isinstance(error, TransferEncodingError):
        # Its message may be the bytes alone.
        return None if error.message in _OF_CHUNKS else "Bad line of a chunk"
    quoting = _BEFORE_QUOTE.fullmatch(error.message)
    return None if quoting is None else " ".join(quoting["words"].split())


_WORDS: Final[dict[type[BaseException], Callable[..., str | None]]] = {
    aiohttp.ServerDisconnectedError: _of_disconnect,
    aiohttp.ClientResponseError: partial(_of_bytes, what="answer"),
    aiohttp.ClientPayloadError: partial(_of_bytes, what="body"),
    aiohttp.ClientConnectionError: _of_connection,
    http.HttpProcessingError: _words_of_parser,
}


_LONGEST_MESSAGE = 4096
LONGEST_CAUSE: Final = 72
"""The longest text of a failure in a list of failures, in characters."""

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


_OF_SERVER: Final = (
    # The class and the status, and the class alone, of another server.
    re.compile(
        r"(?s)(?P<start>\w+: \d{3}, )message=.*, "
        r"(?P<rest>url='\w+://(?:[^/?#'@]*@)?(?P<server>[^/?#']+).*)"
    ),
    re.compile(
        r"(?s)(?P<start>\w+: )Cannot connect to host (?P<rest>(?P<server>\S+):\d+ .*)"
    ),
)
_SSL: Final = re.compile(r" ssl:\S+")


def server_first(described: str, asked: str) -> str | None:
    """Shorten what is said of a failure to name its server, if that was not *asked*.

    A request may fail because another one did, such as one for a token. None where no
    other server is named.

    >>> said = "ClientResponseError: 500, message='Oh', url='https://login/token'"
    >>> server_first(said, "GET https://shop/orders")
    "ClientResponseError: 500, …url='https://login/token'"
    """
    for pattern in _OF_SERVER:
        found = pattern.fullmatch(described)
        if found is not None and not _is_named(found["server"], asked):
            rest = _SSL.sub("", found["rest"], 1)
            return f"{found['start']}{ELLIPSIS}{rest}"
    return None


def _is_named(server: str, asked: str) -> bool:
    # No part of a longer name.
    whole = rf"(?<![\w.-]){re.escape(server)}(?![\w.-])"
    return re.search(whole, asked) is not None


def excerpt(text: str, longest: int = LONGEST_CAUSE) -> str:
    """Return at most so many printable characters, with an ellipsis if more follow."""
    # Cut before all else; it is masked by now.
    text = printable(text[: longest + 1])
    return text if len(text) <= longest else f"{text[: longest - 1]}{ELLIPSIS}"


def without_middle(text: str, longest: int = LONGEST_CAUSE) -> str:
    """Shorten a text whose end says the most."""
    text = printable(text)
    if len(text) <= longest:
        return text
    return f"{text[: _HEAD - 1]}{ELLIPSIS}{text[_HEAD - longest :]}"
