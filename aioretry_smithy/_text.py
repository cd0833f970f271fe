"""Make text fit for logs, spans, labels and the messages of errors."""

from __future__ import annotations

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
    """Quote the blanks of an invalid URL, to log it as one word.

    >>> one_word("http://my shop/")
    'http://my%20shop/'
    """
    return _BLANK.sub(lambda blank: quote(blank[0]), url)


def name_of(function: object) -> str:
    """Return what describes a function in one line."""
    return getattr(function, "__qualname__", None) or repr(function)


def name_without_arguments(function: object) -> str:
    """Return the name of a function, or of the class of what stands for one.

    A partial shows its arguments, which may be secret.
    """
    return getattr(function, "__qualname__", None) or type(function).__name__
