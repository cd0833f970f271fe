"""Hide credentials in headers, URLs, the texts of errors and bodies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_plus

from .printable import ELLIPSIS, encodable
from .reprs import bytes_in, secrets_in_reprs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

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
_JSON_VALUE = re.compile(r"(?<=[?&;#=])[{\[].*", re.DOTALL)
_VALUE = re.compile(r"[^&#\s]*")
_FIELD = re.compile(r"[^\s&#]+")
_WORD = re.compile(r"[\w-]+")

_SECRET_HEADERS = frozenset(
    "authorization proxy-authorization cookie cookie2 set-cookie set-cookie2"
    " dpop".split()
)
"""Headers that are credentials, in lower case, some without a word that tells."""

_SECRET_WORDS = frozenset(
    "auth bearer cookie cookies csrf hmac jwt key otp pass phpsessid pwd sessid sid sig"
    " xsrf".split()
)
_SECRET_PARTS = re.compile(
    "accesskey|apikey|assertion|authorization|credential|passcode|passphrase|passwd"
    "|password|privatekey|secret|session|signature|token"
)
# Most names have none of these, and need no closer look.
_SUSPICIOUS = re.compile("|".join([*sorted(_SECRET_WORDS), _SECRET_PARTS.pattern]))
_TELLING = re.compile(f"{_SUSPICIOUS.pattern}|basic |dpop|morsel")
# Named like secrets, and none. "websocketkey" is a nonce.
_HARMLESS = re.compile(
    "x?(?:accesscontrolallowcredentials|secwebsocketkey|idempotencykey"
    "|(?:cache|foreign|partition|primary|public|routing|sort)keys?"
    "|tokenize[drs]*|tokentype|secretar(?:y|ies))"
)
# How many tokens of a language model a request may cost, cost or still may.
_COUNT_OF_TOKENS = re.compile(
    ".*ratelimit.*tokens.*|maxnewtokens|(?:tokens?|sessions?)(?:count|limit|used)"
    "|(?:max|min|num|prompt|completion|input|output|total|cached|reasoning)+tokens"
)
_SEPARATORS = re.compile(r"[\W_]+")
_WORD_BREAK = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])")

# Printable ASCII. A quoted blank stays quoted: it does not end what is quoted.
_QUOTED = re.compile(
    r"%(2[1-9A-Fa-f]|[3-6][0-9A-Fa-f]|7[0-9A-Ea-e])|\\+(?:u([0-9A-Fa-f]{4})|(/)|.?)",
    re.DOTALL,
)
_MOST_LAYERS = 5

_BLANK: Final = re.compile(r"\s")
# Of a URL with a user, and of what is quoted in one: no blank is in these.
_IN_WORD: Final = re.compile(r"//|[%\\]")
# The user and the password of a URL with blanks in them, up to the end.
_IN_WORDS: Final = re.compile(
    r"//(?![/\[\s])[^/?#:@\n]*+:(?!\s|\d*+[\s/?#])[^/?#\n]*+\Z"
)

# Possessive throughout: a hostile text makes nothing look twice at the same place.
_JSON_BODY = re.compile(
    r"""(?x) \s*+ (?=[{\["])
    (?: [\s{}\[\],:]
      | (?: "(?:[^"\\\x00-\x1f]|\\.)*+" | -?+(?:\d[\d.eE+-]*+|Infinity|NaN)
          | true | false | null )
        (?= \s*+ (?: [\]},:] | …?\Z ) )
    )*+
    # A value that was cut.
    (?: "(?:[^"\\\x00-\x1f]|\\.)*+\\? | [\w.+-]*+ ) …?\Z"""
)
_STRING = re.compile(r""""((?:[^"\\]|\\.)*+\\?)(?:"(\s*+:\s*+)?)?""")
_TOKEN = re.compile(r""""(?:[^"\\]|\\.)*+\\?"?|[{}\[\]]|[^\s"{}\[\],:]++""")
_FORM = re.compile(r"""[^\s=<>{}"]*+=\S*+\s*\Z""")
_FORM_FIELD = re.compile("[^&]+")
_ALL = re.compile(".+", re.DOTALL)
_NAME = re.compile(r"[\w%.\[\]-]+")
# Between a name that is a value itself and what it is the name of.
_VALUE_OF_NAME = re.compile(r"""\s*+,\s*+"[Vv]alue"\s*+:\s*+""")
_OPENING_OF_PAIR = re.compile(r"\[\s{0,9}\Z")
_MIDDLE_OF_PAIR = re.compile(r"""\s*+,\s*+(?=["\d-])""")
_END_OF_PAIR = re.compile(r"\s*+(?:\]|…?\Z)")
_NAME_ALONE = re.compile(r"[\w .%\[\]-]{1,100}")
_BEFORE_VALUE = re.compile(r"[:=>]+\s*")
# Of a private key in PEM, and of a URL with a user. That is one with an "@", or with a
# ":" and no port (the preview may end before the "@"), or one that was cut.
_BEFORE_CREDENTIAL = re.compile(
    r"""-----(?=BEGIN[A-Z0-9\ +%]{1,40}PRIVATE[\ +%20]{1,3}KEY)
    | //(?![\[/]) (?= [^\s/?#"<>@:]*+
      (?: @ | (?<=…)\Z | :(?!\d*+\.?(?:[\s/?#"'`<>,;)}\]\\&]|\Z))
      # With a blank in it, only up to an "@".
      | [^\S\n] [^/?#"<>@:\n]*+ :(?!\s|\d*+(?:[\s/?#]|\Z)) [^/?#"<>@\n]*+ @ ) )""",
    re.VERBOSE,
)


class Mask:
    """Hides credentials: under the usual names, and under additional names.

    Its results are for logs, so UTF-8 can carry them.

    Args:
        headers: Further header names, in any case.
        query_parameters: Further names of query parameters, in any case.
    """

    __slots__ = ("_further", "_headers", "_members", "_parameters")

    def __init__(
        self, headers: Iterable[str] = (), query_parameters: Iterable[str] = ()
    ) -> None:
        self._headers = _SECRET_HEADERS.union(name.lower() for name in headers)
        self._parameters = frozenset(name.lower() for name in query_parameters)
        self._members = self._headers | self._parameters
        self._further = tuple(self._members - _SECRET_HEADERS)

    def __or__(self, other: Mask) -> Mask:
        return Mask(
            self._headers | other._headers, self._parameters | other._parameters
        )

    def covers(self, other: Mask) -> bool:
        """Say whether all names hidden by *other* are hidden by this mask."""
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
        """Return *text* without the credentials of URLs and of what Python describes.

        Where a parameter quotes a URL or JSON with something to hide, all of its value
        is hidden.
        """
        text = self._in_plain_sight(encodable(text))
        return self._in_fields(text)

    def message(self, text: str) -> str:
        """Return the message of an error without credentials, and without its bytes.

        A header that aiohttp cannot read is quoted, a cookie often without its name.
        """
        text = encodable(text)
        text = _hide(text, [*self._spans(text), *bytes_in(text)])
        return self._in_fields(text)

    def content(self, text: str) -> str:
        """Return *text*, the beginning of a body, with the secrets in it hidden.

        It is rather too much than too little: of what is neither JSON nor a form, all
        that stands behind a secret name.
        """
        text = encodable(text)
        return _hide(text, _secret_parts(text, self._is_secret_member))

    def _in_plain_sight(self, text: str) -> str:
        """Return *text* without unquoted secrets."""
        return _hide(text, self._spans(text))

    def _spans(self, text: str) -> list[Span]:
        spans = [*_user_info(text), *self._in_parameters(text)]
        lower = text.lower()
        # Most texts have none of these, and need no closer look.
        if _TELLING.search(lower) or any(name in lower for name in self._further):
            spans += secrets_in_reprs(text, self._is_secret_member, self._is_header)
        return spans

    def _in_fields(self, text: str) -> str:
        return _FIELD.sub(self._field, text) if _QUOTED.search(text) else text

    def _in_parameters(self, text: str) -> Iterator[Span]:
        position = 0
        # A value may hold a URL with parameters of its own, so it is not skipped.
        while match := _PARAMETER.search(text, position):
            position = match.end()
            if self._is_secret(match[1]):
                value = next(_VALUE.finditer(text, position))
                yield value.span()
                position = value.end()
        if json := _JSON_VALUE.search(text):
            start = json.start() + _secret_start(json[0], self._is_secret_member)
            if start < len(text):
                yield start, len(text)

    def _field(self, match: re.Match[str]) -> str:
        """Hide the quoted part of a field of a URL, if a secret is inside."""
        field = match[0]
        quoted = _QUOTED.search(field)
        if quoted is None:
            return field
        start = 1 + max(field.rfind(mark, 0, quoted.start()) for mark in "?;=")
        is_hidden = _is_found_below(
            f"?{field[start:]}", lambda below: below != self._in_plain_sight(below)
        )
        return f"{field[:start]}{HIDDEN}" if is_hidden else field

    def _is_secret(self, parameter: str) -> bool:
        name = unquote_plus(parameter)
        return looks_secret(name) or name.lower() in self._parameters

    def _is_header(self, name: str) -> bool:
        """Say whether a name before a colon is surely that of a secret header."""
        return name.lower() in self._headers or ("-" in name and looks_secret(name))

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
    if _HARMLESS.fullmatch(joined) or _COUNT_OF_TOKENS.fullmatch(joined):
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
    """Return *text* with the spans replaced by a placeholder."""
    shown, position, hidden = [], 0, -1
    for start, end in sorted(spans):
        if start > hidden:
            shown += [text[position:start], HIDDEN]
        position = hidden = max(hidden, end)
    return "".join([*shown, text[position:]])


def beginning(text: str, longest: int) -> str:
    """Return so many characters of a text, or fewer, which can be masked safely.

    Most secrets are known by what stands before them. The user and the password of a
    URL are known by the "@" behind them: what may be such a part is left out.

    >>> beginning("see https://user:secret@example.com/", 20)
    'see https:'
    """
    if len(text) <= longest:
        return text
    head = text[:longest]
    blank = _BLANK.search(head[::-1])
    last_word = 0 if blank is None else longest - blank.start()
    parts = _IN_WORD.search(head, last_word), _IN_WORDS.search(head)
    return head[: min((part.start() for part in parts if part), default=longest)]


def _secret_parts(text: str, is_secret: Callable[[str], bool]) -> Iterator[Span]:
    """Find the secrets in the beginning of a body.

    In JSON, cut or not, the values of secret members are, and in its strings, in the
    fields of a form and in any other text all that stands behind a secret name.
    """
    if _JSON_BODY.match(text):
        parts = _parts_of_json(text, is_secret)
    else:
        pieces = (_FORM_FIELD if _FORM.match(text) else _ALL).finditer(text)
        parts = ((p.start() + _secret_start(p[0], is_secret), p.end()) for p in pieces)
    end = len(text.removesuffix(ELLIPSIS))
    return ((start, min(stop, end)) for start, stop in parts if start < min(stop, end))


def _secret_start(text: str, is_secret: Callable[[str], bool]) -> int:
    """Return where the first secret in a text begins, its length if there is none.

    Where it is quoted, that is where the quoting begins.
    """
    start = _plain_secret_start(text, is_secret)
    quoted = _QUOTED.search(text, 0, start)
    if quoted is not None and _is_found_below(
        text[:start], lambda below: _plain_secret_start(below, is_secret) < len(below)
    ):
        return quoted.start()
    return start


def _plain_secret_start(text: str, is_secret: Callable[[str], bool]) -> int:
    """Return where the first credential or the first value of a secret name begins."""
    credential = _BEFORE_CREDENTIAL.search(text)
    end = len(text) if credential is None else credential.end()
    last = max(text.rfind(separator, 0, end) for separator in ":=>")
    for name in _NAME.finditer(text, 0, last):
        if is_secret(name[0]):
            return next(_BEFORE_VALUE.finditer(text, name.end())).end()
    return end


def _parts_of_json(text: str, is_secret: Callable[[str], bool]) -> Iterator[Span]:
    position = 0
    while string := _STRING.search(text, position):
        position = string.end()
        content, is_name = string[1], string[2]
        yield string.start(1) + _secret_start(content, is_secret), string.end(1)
        if is_name and (is_secret(content) or _is_found_below(content, is_secret)):
            start, position = position, _value_end(text, position)
            yield start, position
            # The name may be "key" alone, and its value a name.
            named = _named_value(text, _STRING.match(text, start), is_secret)
        else:
            named = None if is_name else _named_value(text, string, is_secret)
        if named is not None:
            yield named
            position = named[1]


def _named_value(
    text: str, name: re.Match[str] | None, is_secret: Callable[[str], bool]
) -> Span | None:
    """Find the value of a secret name that is itself the value of a member.

    As in ``"name": "token", "value": ...``; or the second half of a pair, such as
    ``["token", ...]``, which a list of two names may be, too.
    """
    if name is None or not (_NAME_ALONE.fullmatch(name[1]) and is_secret(name[1])):
        return None
    value = _VALUE_OF_NAME.match(text, name.end())
    if value is not None:
        return value.end(), _value_end(text, value.end())
    start = name.start()
    middle = _MIDDLE_OF_PAIR.match(text, name.end())
    if middle is None or not _OPENING_OF_PAIR.search(text[max(0, start - 10) : start]):
        return None
    end = _value_end(text, middle.end())
    return (middle.end(), end) if _END_OF_PAIR.match(text, end) else None


def _value_end(text: str, start: int) -> int:
    depth = 0
    for token in _TOKEN.finditer(text, start):
        depth += (token[0] in "{[") - (token[0] in "}]")
        if depth <= 0:
            return token.end()
    return len(text)


def _is_found_below(text: str, is_found: Callable[[str], bool]) -> bool:
    """Say whether a text with all quoting removed satisfies a predicate.

    It is looked for below each layer, not in the text as it is. It counts as found in
    what is quoted more than five times.

    >>> _is_found_below("a%253Db", lambda text: "=" in text)
    True
    """
    for _ in range(_MOST_LAYERS):
        text, quoted = _QUOTED.subn(_unquoted, text)
        if not quoted:
            return False
        if is_found(text):
            return True
    return _QUOTED.search(text) is not None


def _unquoted(match: re.Match[str]) -> str:
    number = match[1] or match[2]
    return chr(int(number, 16)) if number else match[3] or "'"


DEFAULT_MASK = Mask()
"""Hides what is secret everywhere."""
