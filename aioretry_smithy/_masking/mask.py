"""Hide credentials in headers, URLs and the texts of errors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from .._body_text import CUT
from .._text import encodable
from .quoting import below_quoting
from .redaction import bracket_end, is_structured, secret_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Span = tuple[int, int]

HIDDEN = "****"

_SECRET_HEADERS = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "cookie",
        "cookie2",
        "set-cookie",
        "set-cookie2",
        "dpop",
    }
)
_SECRET_PARAMETERS = frozenset(
    {"auth", "bearer", "hmac", "jwt", "key", "otp", "pass", "pwd", "sid", "sig"}
)
_SECRET_WORDS = re.compile(
    "accesskey|apikey|assertion|authorization|credential|passcode|passphrase|passwd"
    "|password|privatekey|secret|session|signature|token"
)
# Named like secrets, and none. The second is a nonce.
_HARMLESS = frozenset(
    {"accesscontrolallowcredentials", "secwebsocketkey", "idempotencykey"}
)
# How many tokens of a language model a request may cost, cost or still may.
_COUNT_OF_TOKENS = re.compile(
    ".*ratelimit.*tokens.*|maxnewtokens"
    "|(?:max|min|prompt|completion|input|output|total|cached|reasoning)+tokens"
)
_NOT_BLANK = re.compile(r"\S+")
_NOT_QUOTED = re.compile(r"""(?:[^\s"\\]++|\\\S)++""")
_END_OF_AUTHORITY = re.compile(r"[/?#]")
_HOST_AND_PORT = re.compile(r"[^:]*(:\d*)?|\[.*")
_PARAMETER = re.compile(r"(?<=[?&;#=])([^=&;#\s?]+)=")
_JSON = re.compile(r"(?<=[?&;#=])[{\[]")
_VALUE = re.compile(r"[^&#\s]*")
# In a body that is cut nobody knows whether an "@" followed: a user with what is no
# port is one, and where the cut is in the authority, all of that is.
_BEFORE_TAIL = re.compile(r"""(?s:.*[\s"<>@])?""")
_USER_AND_PASSWORD = re.compile(
    r"""(?<=//)(?!\[)[^/?#:]*+:(?!\d*+(?:[/?#'`,;)}\]\\&]|\Z)).*""", re.DOTALL
)
_LAST_AUTHORITY = re.compile(r"""(?<=//)[^\s"<>/?#]++\Z""")
_FORM = re.compile(r"""[^\s=<>{}"]*+=\S*+\s*\Z""")
_MOST_LAYERS = 2
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_NAME_BREAK = re.compile(r"[^\w-]+")
_WORD_BREAK = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])")


class Mask:
    """Hides credentials: the usual ones, and those that it is told of.

    What it returns is for others to see, so UTF-8 can carry it.

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

        Also of a URL that is quoted in the value of a parameter of another one, and in
        that of another one, and of JSON in such a value; what is quoted deeper than is
        looked into is hidden.
        """
        text = encodable(text)
        return _hide(text, below_quoting(text, self._in_urls))

    def _in_urls(self, text: str) -> Iterator[Span]:
        yield from _user_info(text, _NOT_BLANK)
        position = 0
        # A value may hold a URL with parameters of its own, so it is not skipped.
        while match := _PARAMETER.search(text, position):
            position = match.end()
            if self._is_secret(match[1]):
                value = next(_VALUE.finditer(text, position))
                yield value.span()
                position = value.end()
        yield from self._in_json(text)

    def _in_json(self, text: str) -> Iterator[Span]:
        """Find secret members of JSON that is the value of a parameter."""
        end = 0
        while match := _JSON.search(text, end):
            start, end = match.start(), bracket_end(text, match.start())
            value = text[start:end].replace("+", " ").replace("%20", "   ")
            for first, last in self._members(value):
                yield start + first, start + last

    def content(self, text: str) -> str:
        """Return *text*, the beginning of a body, with the secrets in it hidden.

        What is hidden are the values of members with a secret name, in JSON, forms, XML
        and whatever else looks alike, private keys, and the credentials of URLs. It is
        rather too much than too little.
        """
        return self._content(encodable(text), _MOST_LAYERS)

    def _content(self, text: str, layers: int) -> str:
        cut = CUT if text.endswith(CUT) else ""
        text = text.replace("\\/", "/")
        is_form = _FORM.match(text) is not None
        if is_form:
            text = "&".join([self._field(field, layers) for field in text.split("&")])
        text = text.removesuffix(CUT)
        # What the fields of a form quote has been looked into by now.
        below = self._members(text) if is_form else below_quoting(text, self._members)
        text = _hide(text, below)
        text = _without_cut_user_info(text, is_cut=bool(cut))
        # In JSON without a blank, a word is what stands between two quotes.
        words = _NOT_QUOTED if is_structured(text) else _NOT_BLANK
        users = below_quoting(text, lambda layer: _user_info(layer, words))
        return _hide(text, users) + cut

    def _members(self, text: str) -> Iterator[Span]:
        return secret_values(text, self._is_secret_member)

    def _field(self, field: str, layers: int) -> str:
        """Hide the value of a field that is secret, or holds JSON or a URL that is.

        Args:
            field: Name and value, quoted as in a URL.
            layers: How many forms in forms to look into; what is left is in doubt.
        """
        name, separator, value = field.partition("=")
        decoded = unquote_plus(value).replace("\\/", "/")
        if value and self._is_secret_member(name):
            return f"{name}{separator}{HIDDEN}"
        if decoded == value or (
            layers and decoded == self._content(decoded, layers - 1)
        ):
            return field
        return f"{name}{separator}{HIDDEN}"

    def _is_secret_member(self, name: str) -> bool:
        if "\\u" in name:
            name = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), name)
        if self._is_secret(name):
            return True
        name = unquote_plus(name).lower()
        parts = {name, *_NAME_BREAK.split(name)}
        return not (parts.isdisjoint(self._headers | self._parameters))

    def _is_secret(self, parameter: str) -> bool:
        name = unquote_plus(parameter)
        words = [word.lower() for word in _WORD_BREAK.split(name)]
        joined = "".join(words)
        if name.lower() in self._parameters:
            return True
        if joined.removeprefix("x") in _HARMLESS or _COUNT_OF_TOKENS.fullmatch(joined):
            return False
        return (
            not _SECRET_PARAMETERS.isdisjoint([*words, joined])
            or _SECRET_WORDS.search(joined) is not None
        )


def _without_cut_user_info(text: str, *, is_cut: bool) -> str:
    if "//" not in text:
        return text
    if is_cut:
        text = _LAST_AUTHORITY.sub(HIDDEN, text)
    before = _BEFORE_TAIL.match(text)
    match = _USER_AND_PASSWORD.search(text, 0 if before is None else before.end())
    return text if match is None else f"{text[: match.start()]}{HIDDEN}"


def _user_info(text: str, words: re.Pattern[str]) -> Iterator[Span]:
    """Find the user and the password of each URL in a text."""
    if "//" not in text or "@" not in text:
        return
    for word in words.finditer(text):
        position, last = word.start(), text.rfind("@", *word.span())
        while (start := text.find("//", position, max(last, 0))) >= 0:
            while text.startswith("/", start):
                # One slash too many, and it is no URL; the password is one all the
                # same.
                start += 1
            end = _END_OF_AUTHORITY.search(text, start, word.end())
            stop = word.end() if end is None else end.start()
            at = text.rfind("@", start, stop)
            if at < 0 and not _HOST_AND_PORT.fullmatch(text, start, stop):
                # No host and no port: a password that nobody quoted goes on behind.
                at = last
            position = max(start, at)
            if at >= start:
                yield start, at


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
