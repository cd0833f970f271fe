"""Find the values of secret members in a text that may be cut anywhere."""

from __future__ import annotations

import re
from bisect import bisect
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Span = tuple[int, int]

_MOST_EFFORT = 16

# Possessive throughout: a hostile text makes nothing look twice at the same place.
_MEMBER = re.compile(r"([^,&;?#<>{}\r\n:=]*+)\s*+(?:([:=])[=>]*+)?")
_ELEMENT = re.compile(r"<([^\s<>/!?]++)(?:[^<>]*+(?<!/))?>")
_QUOTE = re.compile(r"""(\\*+)(["'`])""")
_QUOTE_OR_BRACKET = re.compile(r"""(\\*+)(["'`])|([{\[(])|[)\]}]""")
_LITERAL = re.compile(r"(?:-?\d[\d.eE+-]*+|true|false|null)(?=\s*+(?:[,}\]]|\Z))")
_GOES_ON = re.compile(r"""[^\s,;&)\]}>"'`\\<]""")
_BLANKS = {":": re.compile(r"\s*+"), "=": re.compile(r"[ \t]*+")}
_REST_OF_LINE = re.compile(r"[^\r\n]*+")
_NEXT_LINE = re.compile(r"\r?\n(?:(?=[\r\n])|([ \t]*+)(-?)[^\r\n]*+)")
_UNQUOTED_VALUE = re.compile(r"[^&\r\n]*+")
_UNQUOTED_VALUE_IN_MARKUP = re.compile(r"""(?:[^&\r\n"\\]|\\.)*+\\?""")
_UNQUOTED_VALUE_IN_STRING = re.compile(r"""(?s)(?:[^"\\]|\\.)*+\\?""")
_JSON = re.compile(r"""\s*+[{\["]""")
_JSON_STRING = re.compile(r""""((?:[^"\\\r\n]|\\.)*+)"?""")
_PRIVATE_KEY = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_USUAL_SPELLINGS = {"3a": ":", "3d": "=", "": '"'}
_OTHER_SPELLING = re.compile(r"(?i)\\u00(3a|3d)|&(?:quot|#0*+34|#x0*+22);")
_STRUCTURED = re.compile(r"""\s*+[{\["'<]""")


def is_structured(text: str) -> bool:
    """Say whether a text looks like JSON or XML, where quotes end what they began."""
    return _STRUCTURED.match(text) is not None


def secret_values(text: str, is_secret: Callable[[str], bool]) -> Iterator[Span]:
    """Find the values of secret members: of JSON, forms, YAML, XML, headers, code.

    The text is not parsed, since it may be cut and need not be what it says. Each name
    is looked at wherever it stands, also inside of a value, and of two ends that a
    value may have the later one counts. Takes time linear in the length of the text: of
    one that is nested beyond reason all the rest counts as a value.

    Args:
        text: The beginning of a body.
        is_secret: Says so of the name of a member.

    Yields:
        Where a value begins and where it ends, in no order; some overlap.
    """
    spans = chain.from_iterable(
        _within_reason(text, find(spelling, is_secret))
        for spelling in {text, _with_usual_spellings(text)}
        for find in (_members, _elements)
    )
    for start, end in (*spans, *_private_keys(text)):
        if end > start:
            yield start, end


def _with_usual_spellings(text: str) -> str:
    """Return a text of the same length without escapes of what separates members."""
    return _OTHER_SPELLING.sub(_usual_spelling, text)


def _usual_spelling(other: re.Match[str]) -> str:
    return _USUAL_SPELLINGS[(other[1] or "").lower()].rjust(len(other[0]))


def _private_keys(text: str) -> Iterator[Span]:
    end = 0
    while match := _PRIVATE_KEY.search(text, end):
        end = text.find("-----END", match.end())
        end = len(text) if end < 0 else end
        yield match.end(), end


def _within_reason(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Give up on a text with too many values inside of values: all the rest is one."""
    effort = 0
    for start, end in spans:
        yield start, end
        effort += end - start
        if effort > _MOST_EFFORT * len(text):
            yield start, len(text)
            return


def _members(text: str, is_secret: Callable[[str], bool]) -> Iterator[Span]:
    strings = _json_strings(text)
    in_form = _UNQUOTED_VALUE_IN_MARKUP if is_structured(text) else _UNQUOTED_VALUE
    position = effort = 0
    while position < len(text) and (match := _MEMBER.match(text, position)):
        position = max(match.end(), position + 1)
        separator = match[2]
        if not (separator and match[1]):
            continue
        name = _name(text, match)
        effort += len(name)
        if effort > _MOST_EFFORT * len(text):
            yield match.end(), len(text)
            return
        if is_secret(name):
            start = _end(_BLANKS[separator], text, match.end())
            unquoted_value = in_form if separator == "=" else None
            if separator == ":" and _is_within(strings, match):
                unquoted_value = _UNQUOTED_VALUE_IN_STRING
            yield start, _value_end(text, start, match, unquoted_value)


def _json_strings(text: str) -> list[Span]:
    if _JSON.match(text) is None:
        return []
    return [match.span(1) for match in _JSON_STRING.finditer(text)]


def _is_within(strings: list[Span], member: re.Match[str]) -> bool:
    """Say whether a name stands in a string, among other words, not quoted itself."""
    separator = member.start(2)
    before = bisect(strings, (separator, 0))
    return (
        not member[1].rstrip().endswith(("'", '"'))
        and before > 0
        and separator < strings[before - 1][1]
    )


def _elements(text: str, is_secret: Callable[[str], bool]) -> Iterator[Span]:
    for match in _ELEMENT.finditer(text):
        if is_secret(match[1]):
            closing = text.find(f"</{match[1]}>", match.end())
            yield match.end(), len(text) if closing < 0 else closing


def _name(text: str, match: re.Match[str]) -> str:
    """Return the name of a member; one that is quoted may have any character in it."""
    name = match[1].rstrip()
    start, end = match.start(), match.start() + len(name)
    if name.endswith(("'", '"')):
        quote, end = name[-1], end - 1
        # One with more backslashes than the last one needs is part of the name.
        slashes = _level(_backslashes_before(text, end, 0))
        opening = text.rfind(quote, 0, end)
        while opening >= 0 and _backslashes_before(text, opening, 0) > slashes:
            opening = text.rfind(quote, 0, opening)
        start = min(start, opening + 1)
    return text[start:end]


def _value_end(
    text: str,
    start: int,
    member: re.Match[str],
    unquoted_value: re.Pattern[str] | None,
) -> int:
    """Return where the value of a member ends.

    Args:
        text: The text.
        start: Where the value begins.
        member: Name and separator.
        unquoted_value: How far a value goes that is not quoted; None if to the end of
            its lines.
    """
    if quote := _QUOTE.match(text, start):
        end = _quoted_end(text, quote)
    elif text.startswith(("{", "[", "("), start):
        end = bracket_end(text, start)
    elif member[2] == ":" and (literal := _LITERAL.match(text, start)):
        return literal.end()
    else:
        end = start
    if end > start and not _GOES_ON.match(text, end):
        return end
    if unquoted_value is None:
        return _lines_end(text, end, member.start())
    return _end(unquoted_value, text, end)


def _quoted_end(text: str, opening: re.Match[str]) -> int:
    """Return where a string ends, and others that follow it without a blank."""
    quote: re.Match[str] | None = opening
    end = opening.end()
    while quote is not None and quote.group() == opening.group():
        end = _string_end(text, quote)
        quote = _QUOTE.match(text, end)
    return end


def _string_end(text: str, opening: re.Match[str]) -> int:
    slashes = len(opening[1])
    position = opening.end()
    while (position := text.find(opening[2], position)) >= 0:
        run = _backslashes_before(text, position, opening.end())
        position += 1
        if run <= slashes or _level(run) == slashes:
            return position
    return len(text)


def _level(slashes: int) -> int:
    """Return how many of the backslashes before a quote are not of the string.

    JSON in a string of JSON quotes with one, in a string of that with three.

    >>> _level(1), _level(2), _level(3)
    (1, 0, 3)
    """
    level = 0
    while slashes % (2 * level + 2) != level:
        level = 2 * level + 1
    return level


def _backslashes_before(text: str, position: int, floor: int) -> int:
    start = position
    while start > floor and text[start - 1] == "\\":
        start -= 1
    return position - start


def bracket_end(text: str, position: int) -> int:
    """Return where the bracket ends that begins at a position, or else the text."""
    depth = 0
    while match := _QUOTE_OR_BRACKET.search(text, position):
        position = match.end()
        if match[2]:
            position = _string_end(text, match)
        else:
            depth += 1 if match[3] else -1
            if depth == 0:
                return position
    return len(text)


def _lines_end(text: str, position: int, name_start: int) -> int:
    """Return where a line ends, with the lines that go on with it as in YAML."""
    line_start = max(text.rfind("\n", 0, name_start), text.rfind("\r", 0, name_start))
    text_start = _end(_BLANKS["="], text, line_start + 1)
    indent, is_item = text_start - line_start - 1, text.startswith("-", text_start)
    end = _end(_REST_OF_LINE, text, position)
    while line := _NEXT_LINE.match(text, end):
        if line[1] is not None:
            depth = len(line[1])
            if depth < indent or (depth == indent and (is_item or not line[2])):
                break
        end = line.end()
    return end


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return position if match is None else match.end()
