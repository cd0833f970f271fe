"""What a log never shows: credentials in headers, URLs and the texts of errors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

HIDDEN = "****"

_SECRET_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie"}
)
_SECRET_PARAMETERS = frozenset(
    {"auth", "bearer", "hmac", "jwt", "key", "otp", "pass", "pwd", "sid", "sig"}
)
_SECRET_WORDS = re.compile(
    "accesskey|apikey|assertion|authorization|credential|passcode|passphrase|passwd"
    "|password|privatekey|secret|session|signature|token"
)
_NOT_BLANK = re.compile(r"\S+")
_END_OF_AUTHORITY = re.compile(r"[/?#]")
_HOST_AND_PORT = re.compile(r"[^:]*(:\d*)?|\[.*")
_PARAMETER = re.compile(r"[?&;#]([^=&;#\s?]+)=")
_VALUE = re.compile(r"[^&#\s]*")
_WORD_BREAK = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])")


class Mask:
    """Hides credentials: the usual ones, and those that it is told of.

    Args:
        headers: Further header names, in any case.
        query_parameters: Further names of query parameters, in any case.
    """

    __slots__ = ("_headers", "_parameters")

    def __init__(
        self, headers: Iterable[str] = (), query_parameters: Iterable[str] = ()
    ) -> None:
        self._headers = _SECRET_HEADERS.union(name.lower() for name in headers)
        self._parameters = frozenset(name.lower() for name in query_parameters)

    def __or__(self, other: Mask) -> Mask:
        return Mask(
            self._headers | other._headers, self._parameters | other._parameters
        )

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return *headers* as one line a name, secret values hidden."""
        shown: dict[str, str] = {}
        for name, value in headers.items():
            hidden = name.lower() in self._headers
            text = HIDDEN if hidden else self.text(str(value))
            before = shown.get(name)
            shown[name] = text if before is None or hidden else f"{before}, {text}"
        return shown

    def text(self, text: str) -> str:
        """Return *text* with the credentials of every URL in it hidden."""
        if "//" in text and "@" in text:
            text = _NOT_BLANK.sub(_hide_user_info, text)
        shown, position = [], 0
        # A value may hold a URL with parameters of its own, so it is not skipped.
        while match := _PARAMETER.search(text, position):
            shown.append(text[position : match.end()])
            position = match.end()
            if self._is_secret(match[1]):
                shown.append(HIDDEN)
                position = next(_VALUE.finditer(text, position)).end()
        return "".join([*shown, text[position:]])

    def _is_secret(self, parameter: str) -> bool:
        name = unquote_plus(parameter)
        words = [word.lower() for word in _WORD_BREAK.split(name)]
        joined = "".join(words)
        return (
            name.lower() in self._parameters
            or not _SECRET_PARAMETERS.isdisjoint([*words, joined])
            or _SECRET_WORDS.search(joined) is not None
        )


def _hide_user_info(word: re.Match[str]) -> str:
    """Hide the user and the password of each URL in a text without blanks."""
    text = word[0]
    last = text.rfind("@")
    shown, position = [], 0
    while (start := text.find("//", position, last)) >= 0:
        while text.startswith("/", start):
            # One slash too many, and it is no URL; the password is one all the same.
            start += 1
        end = _END_OF_AUTHORITY.search(text, start)
        stop = len(text) if end is None else end.start()
        at = text.rfind("@", start, stop)
        if at < 0 and not _HOST_AND_PORT.fullmatch(text, start, stop):
            # No host and no port: a password that nobody quoted goes on behind.
            at = last
        shown.append(text[position:start])
        position = start if at < 0 else at
        if at >= 0:
            shown.append(HIDDEN)
    return "".join([*shown, text[position:]])


DEFAULT_MASK = Mask()
"""Hides what is secret everywhere."""
