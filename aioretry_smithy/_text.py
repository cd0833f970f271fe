"""Text that goes out: into logs, spans, labels and the messages of errors."""

from __future__ import annotations


def encodable(text: str) -> str:
    r"""Escape what UTF-8 cannot carry: half a surrogate pair.

    aiohttp makes one of each byte of a header that is no UTF-8, and JSON may have them
    too. An exporter that meets one loses all that it was to send.

    >>> print(encodable("http://[\udcff/"))
    http://[\udcff/
    """
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def printable(text: str) -> str:
    """Escape what would move a terminal's cursor or break a line."""
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable()
        else character.encode("unicode_escape").decode()
        for character in text
    )
