"""Find what is secret in the beginning of a body: JSON, a form or anything else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .._body_text import CUT
from .quoting import QUOTED, is_found_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Span = tuple[int, int]

# Possessive throughout: a hostile text makes nothing look twice at the same place.
_JSON = re.compile(
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
_FIELD = re.compile("[^&]+")
_ALL = re.compile(".+", re.DOTALL)
_NAME = re.compile(r"[\w%.\[\]-]+")
# Most strings have none of these, and need no closer look.
_STRUCTURE = re.compile(r"[:=>/%\\-]")
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


def secret_parts(text: str, is_secret: Callable[[str], bool]) -> Iterator[Span]:
    """Find the secrets in the beginning of a body.

    In JSON, cut or not, the values of secret members are, and in its strings, in the
    fields of a form and in any other text all that stands behind a secret name.
    """
    if _JSON.match(text):
        parts = _parts_of_json(text, is_secret)
    else:
        pieces = (_FIELD if _FORM.match(text) else _ALL).finditer(text)
        parts = ((p.start() + secret_start(p[0], is_secret), p.end()) for p in pieces)
    end = len(text.removesuffix(CUT))
    return ((start, min(stop, end)) for start, stop in parts if start < min(stop, end))


def secret_start(text: str, is_secret: Callable[[str], bool]) -> int:
    """Return where the first secret in a text begins, its length if there is none.

    Where it is quoted, that is where the quoting begins.
    """
    if _STRUCTURE.search(text) is None:
        return len(text)
    start = _plain_secret_start(text, is_secret)
    quoted = QUOTED.search(text, 0, start)
    if quoted is not None and is_found_below(
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
        yield string.start(1) + secret_start(content, is_secret), string.end(1)
        if is_name and (is_secret(content) or is_found_below(content, is_secret)):
            start, position = position, _value_end(text, position)
            yield start, position


def _value_end(text: str, start: int) -> int:
    depth = 0
    for token in _TOKEN.finditer(text, start):
        depth += (token[0] in "{[") - (token[0] in "}]")
        if depth <= 0:
            return token.end()
    return len(text)
