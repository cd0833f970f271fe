"""Make text fit for logs, spans and messages, and decode the beginnings of bodies."""

from __future__ import annotations

import codecs
import re
from typing import Final
from urllib.parse import quote

_BLANK: Final = re.compile(r"\s", re.ASCII)


def encodable(text: str) -> str:
    r"""Escape lone surrogates, which UTF-8 cannot encode.

    aiohttp makes one of each byte of a header that is not UTF-8, and JSON may have them
    too. An exporter that meets one loses its whole batch.

    >>> print(encodable("http://[\udcff/"))
    http://[\udcff/
    """
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def printable(text: str) -> str:
    """Escape characters that move a terminal's cursor or break a line."""
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable()
        else character.encode("unicode_escape").decode()
        for character in text
    )


def one_word(url: str) -> str:
    """Quote the blanks of an invalid URL, to log a single word.

    >>> one_word("http://my shop/")
    'http://my%20shop/'
    """
    return _BLANK.sub(lambda blank: quote(blank[0]), url)


def name_of(function: object) -> str:
    """Return a one-line name of a function."""
    return getattr(function, "__qualname__", None) or repr(function)


def name_without_arguments(function: object) -> str:
    """Return the name of a function, or of the class of what stands for one.

    A partial shows its arguments, which may be secret.
    """
    return getattr(function, "__qualname__", None) or type(function).__name__


ELLIPSIS = "…"
"""The end of a preview that does not show the whole text."""

_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([^\s;"']+)""", re.IGNORECASE)
_WORD = re.compile(r"[a-z0-9]+")
_TEXT_WORDS = frozenset(
    "ecmascript graphql javascript json json5 jsonl jsonlines ndjson sql toml"
    " urlencoded xml yaml yml".split()
)
# Codecs of Python that are no charsets on the wire.
_NO_CHARSETS = {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"}
# The binary data bytes of the WHATWG's MIME sniffing: no text has them.
_BINARY = re.compile("[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_LONGEST_CHARACTER = 4


def is_text(content_type: str) -> bool:
    """Say whether a body of this Content-Type is for people to read."""
    kind, _, subtype = content_type.partition(";")[0].strip().lower().partition("/")
    if kind == "multipart":
        return False
    return kind == "text" or not _TEXT_WORDS.isdisjoint(_WORD.findall(subtype))


def shortened(text: str, max_length: int) -> str | None:
    """Return the first *max_length* characters of a text, or None if it is empty."""
    return f"{text[:max_length]}{ELLIPSIS}" if len(text) > max_length else text or None


class BodyHead:
    """Collects the first bytes of a body, and decodes them on demand."""

    __slots__ = ("_content_type", "_data", "_limit", "_max_length")

    def __init__(self, content_type: str, max_length: int) -> None:
        self._content_type = content_type
        self._max_length = max_length
        # One more tells whether there are more; before all is a byte order mark.
        self._limit = (max_length + 2) * _LONGEST_CHARACTER
        self._data = bytearray()

    @property
    def is_full(self) -> bool:
        """Whether no more bytes are needed."""
        return len(self._data) >= self._limit

    def add(self, chunk: bytes | bytearray | memoryview) -> None:
        """Copy as many of the next bytes as are needed."""
        self._data += chunk[: self._limit - len(self._data)]

    def text(self) -> str | None:
        """Return the first characters of the part that has arrived.

        None for an empty body, and for one that turns out not to be text.
        """
        text = _decoded(bytes(self._data), self._content_type)
        if _BINARY.search(text):
            return None
        preview = shortened(text, self._max_length)
        if preview == text and self.is_full:
            # Charsets with escape sequences take more bytes for a character.
            return text + ELLIPSIS
        return preview


def _decoded(data: bytes, content_type: str) -> str:
    charset = _CHARSET.search(content_type)
    codec = _codec("utf-8" if charset is None else charset[1])
    try:
        text = _beginning(data, codec)
    except UnicodeError:
        # The decoder raises without a byte order mark (then little-endian, as in the
        # WHATWG's standard), and for wrong escapes of ISO-2022 (then UTF-8).
        text = _beginning(data, _codec(f"{codec.name}-le"))
    return text.removeprefix("\ufeff")


def _beginning(data: bytes, codec: codecs.CodecInfo) -> str:
    # Never final: an incomplete character at the end is left out.
    return codec.incrementaldecoder(errors="replace").decode(data)


def _codec(charset: str) -> codecs.CodecInfo:
    try:
        # No registered charset has another name; Python 3.15 warns of asking for one.
        codec = codecs.lookup(charset if charset.isascii() else "utf-8")
        b" ".decode(codec.name, "replace")  # not found: no text encoding at all
    except (LookupError, ValueError):
        codec = codecs.lookup("utf-8")
    if codec.name in _NO_CHARSETS:
        codec = codecs.lookup("utf-8")
    return codec
