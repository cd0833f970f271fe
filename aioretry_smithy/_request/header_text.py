"""Refuse what is no name of a header, and no value of one."""

from __future__ import annotations

import re
from typing import Final, TypeGuard

from .._errors import bad_argument

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# ASCII without control characters, and without a blank at either end.
_VALUE: Final = re.compile(r"[!-~]+(?:[ \t]+[!-~]+)*")


def is_header_name(value: object) -> TypeGuard[str]:
    """Say whether it is the name of a header.

    >>> is_header_name("X-Api-Key"), is_header_name("X Api Key")
    (True, False)
    """
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def check_header_name(name: str, value: object) -> None:
    """Refuse anything but the name of a header."""
    if not is_header_name(value):
        raise bad_argument(name, value, "a header name")


def is_header_value(value: object) -> TypeGuard[str]:
    r"""Say whether a header may carry a text, and the server gets it as it is.

    >>> is_header_value("Bearer abc"), is_header_value("abc\n"), is_header_value("")
    (True, False, False)
    """
    return isinstance(value, str) and _VALUE.fullmatch(value) is not None
