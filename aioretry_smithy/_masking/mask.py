"""Hide credentials in headers, URLs and the texts of errors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from .._text import encodable
from .body_secrets import secret_parts, secret_start
from .quoting import QUOTED, is_found_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Span = tuple[int, int]

HIDDEN = "****"

_NOT_BLANK = re.compile(r"\S+")
# The part of a URL before its "@". Where no host and no port stand before the path, a
# password that is not quoted goes on behind.
_USER = re.compile(
    r"(?<=//)(?!/)(?:[^/?#]*@|(?!\[)[^:/?#]*+:(?!\d*+[/?#]).*@)", re.DOTALL
)
# The same over several words. A number before a blank is a port.
_USER_WITH_BLANKS = re.compile(
    r"(?<=//)(?![/\[\s])[^/?#:@\n]*+:(?!\s|\d*+(?:[\s/?#]|\Z))[^/?#\n]*@"
)
_PARAMETER = re.compile(r"(?<=[?&;#=])([^=&;#\s?]+)=")
_JSON = re.compile(r"(?<=[?&;#=])[{\[].*", re.DOTALL)
_VALUE = re.compile(r"[^&#\s]*")
_FIELD = re.compile(r"[^\s&#]+")
_WORD = re.compile(r"[\w-]+")

_SECRET_HEADERS = frozenset(
    "authorization proxy-authorization cookie cookie2 set-cookie set-cookie2"
    " dpop".split()
)
"""Headers that are credentials, in lower case, some without a word that tells."""

_SECRET_WORDS = frozenset("auth bearer hmac jwt key otp pass pwd sid sig".split())
_SECRET_PARTS = re.compile(
    "accesskey|apikey|assertion|authorization|credential|passcode|passphrase|passwd"
    "|password|privatekey|secret|session|signature|token"
)
# Most names have none of these, and need no closer look.
_SUSPICIOUS = re.compile("|".join([*sorted(_SECRET_WORDS), _SECRET_PARTS.pattern]))
# Named like secrets, and none. The second is a nonce.
_HARMLESS = frozenset(
    {"accesscontrolallowcredentials", "secwebsocketkey", "idempotencykey"}
)
# How many tokens of a language model a request may cost, cost or still may.
_COUNT_OF_TOKENS = re.compile(
    ".*ratelimit.*tokens.*|maxnewtokens"
    "|(?:max|min|prompt|completion|input|output|total|cached|reasoning)+tokens"
)
_SEPARATORS = re.compile(r"[\W_]+")
_WORD_BREAK = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])")


class Mask:
    """Hides credentials: the usual ones, and those under names that it is given.

    Its results are for logs, so UTF-8 can carry them.

    Args:
        headers: Further header names, in any case.
        query_parameters: Further names of query parameters, in any case.
    """

    __slots__ = ("_headers", "_members", "_parameters")

    def __init__(
        self, headers: Iterable[str] = (), query_parameters: Iterable[str] = ()
    ) -> None:
        self._headers = _SECRET_HEADERS.union(name.lower() for name in headers)
        self._parameters = frozenset(name.lower() for name in query_parameters)
        self._members = self._headers | self._parameters

    def __or__(self, other: Mask) -> Mask:
        return Mask(
            self._headers | other._headers, self._parameters | other._parameters
        )

    def covers(self, other: Mask) -> bool:
        """Say whether this mask hides all that *other* hides."""
        return other is self or (
            other._headers <= self._headers and other._parameters <= self._parameters
        )

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return *headers* as one line a name, secret values hidden.

        Their names are judged as those of query parameters are.
        """
        shown: dict[str, str] = {}
        for given, value in headers.items():
            name = encodable(given)
            hidden = name.lower() in self._headers or self._is_secret(name)
            text = HIDDEN if hidden else self.text(str(value))
            before = shown.get(name)
            shown[name] = text if before is None or hidden else f"{before}, {text}"
        return shown

    def text(self, text: str) -> str:
        """Return *text* with the credentials of every URL in it hidden.

        Where a parameter quotes a URL or JSON with something to hide, all of its value
        is hidden.
        """
        text = self._in_plain_sight(encodable(text))
        return _FIELD.sub(self._field, text) if QUOTED.search(text) else text

    def content(self, text: str) -> str:
        """Return *text*, the beginning of a body, with the secrets in it hidden.

        It is rather too much than too little: of what is neither JSON nor a form, all
        that stands behind a secret name.
        """
        text = encodable(text)
        return _hide(text, secret_parts(text, self._is_secret_member))

    def _in_plain_sight(self, text: str) -> str:
        """Return *text* without what is secret in URLs that nothing quotes."""
        return _hide(text, [*_user_info(text), *self._in_parameters(text)])

    def _in_parameters(self, text: str) -> Iterator[Span]:
        position = 0
        # A value may hold a URL with parameters of its own, so it is not skipped.
        while match := _PARAMETER.search(text, position):
            position = match.end()
            if self._is_secret(match[1]):
                value = next(_VALUE.finditer(text, position))
                yield value.span()
                position = value.end()
        if json := _JSON.search(text):
            start = json.start() + secret_start(json[0], self._is_secret_member)
            if start < len(text):
                yield start, len(text)

    def _field(self, match: re.Match[str]) -> str:
        """Hide what a field of a URL quotes, if something in that is secret."""
        field = match[0]
        quoted = QUOTED.search(field)
        if quoted is None:
            return field
        start = 1 + max(field.rfind(mark, 0, quoted.start()) for mark in "?;=")
        is_hidden = is_found_below(
            f"?{field[start:]}", lambda below: below != self._in_plain_sight(below)
        )
        return f"{field[:start]}{HIDDEN}" if is_hidden else field

    def _is_secret(self, parameter: str) -> bool:
        name = unquote_plus(parameter)
        return looks_secret(name) or name.lower() in self._parameters

    def _is_secret_member(self, member: str) -> bool:
        name = unquote_plus(member)
        words = [name.lower(), *_WORD.findall(name.lower())]
        return looks_secret(name) or not self._members.isdisjoint(words)


def looks_secret(name: str) -> bool:
    """Say whether a name, in any spelling, is that of a secret.

    >>> looks_secret("accessToken"), looks_secret("X-Api-Key"), looks_secret("monkey")
    (True, True, False)
    """
    joined = _SEPARATORS.sub("", name).lower()
    if _SUSPICIOUS.search(joined) is None:
        return False
    if joined.removeprefix("x") in _HARMLESS or _COUNT_OF_TOKENS.fullmatch(joined):
        return False
    words = [word.lower() for word in _WORD_BREAK.split(name)]
    return (
        not _SECRET_WORDS.isdisjoint([*words, joined])
        or _SECRET_PARTS.search(joined) is not None
    )


def _user_info(text: str) -> Iterator[Span]:
    """Find the user and the password of each URL in a text."""
    if "//" in text and "@" in text:
        for user in _USER_WITH_BLANKS.finditer(text):
            yield user.start(), user.end() - 1
        for word in _NOT_BLANK.finditer(text):
            last = text.rfind("@", *word.span())
            for user in _USER.finditer(text, word.start(), last + 1):
                yield user.start(), user.end() - 1


def _hide(text: str, spans: Iterable[Span]) -> str:
    """Return *text* without these parts of it."""
    shown, position, hidden = [], 0, -1
    for start, end in sorted(spans):
        if start > hidden:
            shown += [text[position:start], HIDDEN]
        position = hidden = max(hidden, end)
    return "".join([*shown, text[position:]])


DEFAULT_MASK = Mask()
"""Hides what is secret everywhere."""
