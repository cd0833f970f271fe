"""Give calls ids, by which their lines, spans and notes find each other."""

from __future__ import annotations

import os
from base64 import b32encode
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .call import Call


def id_of(call: Call) -> str:
    """Return the id of a call, which it gets when it is first asked for."""
    own = call.own_id
    if own is None:
        process, numbers = _ids_of(os.getpid())
        # It has one, though two threads ask at once.
        own = vars(call).setdefault("own_id", f"{process}-{next(numbers)}")
    return own


@lru_cache(maxsize=1)
def _ids_of(process: int) -> tuple[str, Iterator[int]]:
    """Return 40 random bits, and numbers; others after a fork."""
    return b32encode(os.urandom(5)).decode().lower(), count(1)
