"""Find the secrets in what Python says of objects, as the texts of errors quote it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Span = tuple[int, int]


# A quoted name, or one as arguments, classes and headers have it, and what stands
# between it and its value. No part of a text is looked at twice.
_BEFORE_VALUE: Final = re.compile(
    r"""(?x)
    (?<!\\) (?P<quote> \\*+['"] ) \s*+ (?P<mark> =>|[:=,] ) \s*+
  | (?: (?<![\w.-]) | (?<=[\s'"]--) | (?<=\A--) ) (?P<name> [^\W\d][\w.-]*+ )
    (?P<marks> [ ]?=[>=]?\s*+ | \( | :\s*+ )"""
)
# What is between two strings, rather.
_NO_NAME: Final = re.compile(r"""\A[\s,]|['"=:(){}\[\]<>]""")
_NAME_OF_VALUE: Final = re.compile(
    r"""(?:\\*+['"])?[Vv]alue(?:\\*+['"])?\s*+[:=]\s*+"""
)
_PAIR: Final = re.compile(r"""(?:\A|[^b])[(\[]b?\Z""")
_END_OF_PAIR: Final = re.compile(r"\s*+(?:[)\]]|\Z)")
_NUMBER: Final = re.compile(r"[\w.+-]++(?=\s*+[)\]])")

_OPENING: Final = re.compile(r"""[bBrRuU]{0,2}(?P<quote>\\*+['"])|[\w.]*+[(\[{<]""")
_BARE: Final = re.compile(r"""(?:[^\s&'"]|['"](?![\s,:;=)\]}>]|\Z))*+""")
_CLOSERS: Final = ",;:.)]}>'\"\\"
_END: Final = r"(?=[\s&,;:.)\]}>'\"\\]|\Z)"
_IS_AT_END: Final = re.compile(_END)
# What is hidden already stays as it is, and so do objects that tell nothing.
_NO_SECRET: Final = re.compile(
    rf"(?:None|True|False|\*{{4}}|<[\w.]++ object at 0x[0-9a-fA-F]++>){_END}"
)
_COUNT: Final = re.compile(rf"\d{{1,6}}{_END}")
_PLURAL: Final = re.compile(r"[^s]s\Z")

_SCHEME: Final = re.compile(r"(?i:basic|bearer|digest|dpop|token) ")
# A word with a digit is rather a credential than one of a language.
_OF_SCHEME: Final = re.compile(
    r"""(?x) (?<![\w-]) (?i:basic|bearer|dpop)[ ]
    (?= [A-Za-z._~+/-]*+ (?: \d | =++(?!["'\w]) ) )
    (?P<value> [\w.~+/-]{8,}+ (?! =["'\w] ) =*+ )"""
)
_OF_COLON: Final = re.compile(
    r"""(?x) (?P<quote>['"]) [^'"\s]{6,}+ (?P=quote)
    | (?=\S{6}) [^\s\d,;'"()<>\[\]{}]{0,99}+ \d [^\s,;'"()<>\[\]{}]*+"""
)
# Of a host, which may be named after tokens: no blank is before it.
_PORT: Final = re.compile(
    r"""(?x) (?<=:) [1-9]\d{0,4} (?: [.:](?=\s|\Z) | (?=[/?\#\s'"\\)\]}>]|\Z) )"""
)
_LAST_PART: Final = re.compile(r"(.+)[.-](.+)")
_OFTEN_NO_SECRET: Final = frozenset({"auth", "key", "session", "signature"})

# A ">" behind another mark closes nothing.
_TOKEN: Final = re.compile(r"""(?<!\\)\\*+['"]|[(\[{<]|[)\]}]|(?<![-=])>""")
_QUOTES: Final = {mark: re.compile(rf"(?<!\\)(\\*+){mark}(\w?)") for mark in "'\""}
_LINE: Final = re.compile(r"(?:[^\\\r\n]|\\(?![rn\r\n]))*+")
_BACKSLASHES: Final = re.compile(r"\\*\Z")

_MARKS: Final = frozenset("'\"")
_BEFORE_PARAMETER: Final = frozenset("?&;#=/%")
_BYTES: Final = re.compile(
    r"""(?sx) \bb
    # Not the end of a name, as in: circuit breaker 'service-b' is open, 'b' is open.
    (?<! \w[-./]b ) (?! (?<='b)'(?!\w) | (?<="b)"(?!\w) )
    (?: '((?:[^'\\]|\\.)*+\\?) | "((?:[^"\\]|\\.)*+\\?) )"""
)

_LONGEST_NAME: Final = 100
_MOST_APOSTROPHES: Final = 2
_MOST_BACKSLASHES: Final = 64
_LONGEST_WORD: Final = 20
_LAST_WORD: Final = re.compile(r"[A-Z]+[a-z0-9]*\Z")
_COOKIES: Final = frozenset({"Morsel", "SimpleCookie"})


def secrets_in_reprs(
    text: str, is_secret: Callable[[str], bool], is_header: Callable[[str], bool]
) -> Iterator[Span]:
    """Find the values of secret names in a text, as ``repr()`` writes them.

    Those of ``name='value'``, ``'name': 'value'``, ``('name', 'value')`` and
    ``'Name: value'``, what stands in ``BasicAuth(...)`` and behind ``Bearer``; quoted
    once more or not.
    Where the end of one is in doubt, all that follows is part of it.
    """
    for credential in _OF_SCHEME.finditer(text):
        yield credential.span("value")
    position, values = 0, _Values(text)
    while found := _BEFORE_VALUE.search(text, position):
        position = found.end()
        marks = found["marks"]
        if marks is None:
            span = _behind_quoted_name(values, found, is_secret)
        elif marks == "(":
            span = _in_call(text, found, is_secret)
        elif marks == ":" and _is_host(text, found, is_secret):
            span = None
        elif marks[0] == ":":
            span = _behind_header(text, found, is_header)
            if span is None and is_secret(found["name"]):
                span = _behind_colon(text, found)
        else:
            span = _behind_name(values, found, is_secret)
        if span is not None:
            yield span
            position = max(position, _next_place(text, *span, marks))


def _is_host(text: str, found: re.Match[str], is_secret: Callable[[str], bool]) -> bool:
    """Say whether a name before a colon is that of a host with a port behind it."""
    if _PORT.match(text, found.end()) is None:
        return False
    if text[max(0, found.start() - 2) : found.start()].endswith(("//", "@")):
        return True
    # Headers and members are called by what they are, at the end: X-Api-Key.
    words = _LAST_PART.fullmatch(found["name"])
    return words is not None and is_secret(words[1]) and not is_secret(words[2])


def _next_place(text: str, start: int, end: int, marks: str | None) -> int:
    """Return where to look on: what seems to be a string may stand between two."""
    if marks is not None and marks[0] in "(:":
        return end
    opening = _OPENING.match(text, start)
    return end if opening is None or opening["quote"] is None else opening.end()


def bytes_in(text: str) -> Iterator[Span]:
    """Find all bytes in a text, as ``repr()`` writes them.

    Nobody knows what is in them: a header that cannot be read, or a part of a body.
    """
    for found in _BYTES.finditer(text):
        yield found.span(found.lastindex or 1)


def _behind_quoted_name(
    values: _Values, found: re.Match[str], is_secret: Callable[[str], bool]
) -> Span | None:
    """Find the value of a member, or the other half of a pair."""
    text, quote = values.text, found["quote"]
    end, start = found.start(), found.end()
    lowest = max(0, end - _LONGEST_NAME)
    opening = text.rfind(quote, lowest, end)
    name = text[opening + len(quote) : end]
    if opening < 0 or _NO_NAME.search(name) or not is_secret(name):
        return None
    if found["mark"] != ",":
        return values.span(start, name)
    beside = _NAME_OF_VALUE.match(text, start)
    if beside is not None:
        return values.span(beside.end())
    if _PAIR.search(text[max(0, opening - 3) : opening]) is None:
        return None
    return _half_of_pair(values, start)


def _half_of_pair(values: _Values, start: int) -> Span | None:
    """Find the second value of a pair; names one after another are none."""
    text = values.text
    opening = _OPENING.match(text, start)
    if opening is None:
        number = _NUMBER.match(text, start)
        return None if number is None else values.span(start)
    end = values.end(start)
    is_last = opening["quote"] is None or _END_OF_PAIR.match(text, end) is not None
    return (start, end) if is_last else None


def _in_call(
    text: str, found: re.Match[str], is_secret: Callable[[str], bool]
) -> Span | None:
    """Find what an object that is a secret was made with."""
    last = _LAST_WORD.search(found["name"][-_LONGEST_WORD:])
    if last is None or not is_secret(last[0]):
        return None
    return _in_brackets(text, found.end() - 1, found.end())


def _in_brackets(text: str, opening: int, start: int) -> Span | None:
    end = _bracket_end(text, opening)
    if end > start and text[end - 1] in {")", ">"}:
        end -= 1
    return (start, end) if start < end else None


def _behind_header(
    text: str, found: re.Match[str], is_header: Callable[[str], bool]
) -> Span | None:
    """Find the value of a header in a line, which may be all of a string."""
    name, begin, start = found["name"], found.start(), found.end()
    before = text[begin - 1 : begin]
    if before == "<" and name in _COOKIES:
        return _in_brackets(text, begin - 1, start)
    if before == "\\" and name[0] in "nrt":
        # It begins a line of a text that is quoted.
        name = name[1:]
    if not is_header(name):
        return None
    if before in _MARKS:
        around = text[max(0, begin - _MOST_BACKSLASHES) : begin - 1]
        escape = next(_BACKSLASHES.finditer(around))[0]
        return start, _string_end(text, start, f"{escape}{before}")
    return start, next(_LINE.finditer(text, start)).end()


def _behind_colon(text: str, found: re.Match[str]) -> Span | None:
    """Find what follows a name in a sentence, and is no word of a language."""
    if found["name"].lower() in _OFTEN_NO_SECRET:
        return None
    value = _OF_COLON.match(text, found.end())
    return None if value is None else value.span()


def _behind_name(
    values: _Values, found: re.Match[str], is_secret: Callable[[str], bool]
) -> Span | None:
    """Find the value of a named argument, if the name is that of a secret."""
    text, begin, start = values.text, found.start(), found.end()
    is_quoted = text[start : start + 1] in _MARKS
    if text[begin - 1 : begin] in _BEFORE_PARAMETER and not is_quoted:
        # Of a URL, which ends elsewhere.
        return None
    name = found["name"]
    return values.span(start, name) if is_secret(name) else None


class _Values:
    """The places where values of a text end."""

    __slots__ = ("_bare", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._bare = range(0)
        """The range of an unterminated value, skipped by later searches."""

    def span(self, start: int, name: str = "") -> Span | None:
        if _NO_SECRET.match(self.text, start):
            return None
        if _PLURAL.search(name) and _COUNT.match(self.text, start):
            return None
        end = self.end(start)
        return None if end <= start else (start, end)

    def end(self, start: int) -> int:
        text = self.text
        opening = _OPENING.match(text, start)
        if opening is None:
            scheme = _SCHEME.match(text, start)
            return self._bare_end(start if scheme is None else scheme.end())
        quote = opening["quote"]
        if quote is None:
            end = _bracket_end(text, opening.end() - 1)
        else:
            end = _string_end(text, opening.end(), quote) + len(quote)
        end = min(end, len(text))
        return end if _IS_AT_END.match(text, end) else self._bare_end(end)

    def _bare_end(self, start: int) -> int:
        if start not in self._bare:
            end = next(_BARE.finditer(self.text, start)).end()
            while end > start and self.text[end - 1] in _CLOSERS:
                end -= 1
            self._bare = range(start, end)
        return max(start, self._bare.stop)


def _bracket_end(text: str, start: int) -> int:
    """Return the end of a bracketed expression, skipping strings inside."""
    depth, position, has_angles = 0, start, text[start] == "<"
    while token := _TOKEN.search(text, position):
        position, mark = token.end(), token[0]
        if mark[-1] in _MARKS:
            position = min(len(text), _string_end(text, position, mark) + len(mark))
        elif has_angles or mark not in {"<", ">"}:
            depth += 1 if mark in {*"([{<"} else -1
            if depth == 0:
                return position
    return len(text)


def _string_end(text: str, start: int, opening: str) -> int:
    """Return the position of a string's closing quote.

    In a string that is quoted itself, backslashes are before quotes, and more of them
    before those inside. What may be one inside or the end ends nothing.
    """
    depth = len(opening) - 1
    # A layer that escapes this kind of quote makes 2n + 1 of n, another one 2n.
    inside = 2 * depth + (1 if depth & (depth + 1) == 0 else 2)
    apostrophes = 0
    for quote in _QUOTES[opening[-1]].finditer(text, start):
        number = len(quote[1])
        is_inside_word = bool(quote[2]) and apostrophes < _MOST_APOSTROPHES
        if number < depth or (number == depth and not is_inside_word):
            return quote.start()
        if number not in {depth, inside}:
            break
        apostrophes += number == depth
    return len(text)
