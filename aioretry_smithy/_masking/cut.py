"""Cut a text short, so that no secret shows for want of its end."""

from __future__ import annotations

import re
from typing import Final

_BLANK: Final = re.compile(r"\s")
# Of a URL with a user, and of what is quoted in one: no blank is in these.
_IN_WORD: Final = re.compile(r"//|[%\\]")
# The user and the password of a URL with blanks in them, up to the end.
_IN_WORDS: Final = re.compile(
    r"//(?![/\[\s])[^/?#:@\n]*+:(?!\s|\d*+[\s/?#])[^/?#\n]*+\Z"
)


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
