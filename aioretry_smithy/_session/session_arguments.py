"""Refuse misspelt arguments of a session."""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from typing import TYPE_CHECKING

from aiohttp import ClientSession

from .._errors import bad_argument
from .standard import standard_decorators

if TYPE_CHECKING:
    from collections.abc import Collection

STANDARD = {"response_timeout", *inspect.signature(standard_decorators).parameters}
"""The arguments of the standard chain besides those of a session."""


def check_names(given: Collection[str], *, standard: bool = False) -> None:
    """Refuse unknown arguments of a session, and suggest the nearest name.

    Of a *standard* chain, its own arguments are known, too.
    """
    if not given:
        return
    parameters = inspect.signature(ClientSession).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        # A tracer has replaced the class by a function that takes any name.
        return
    known = {each.name for each in parameters}
    expected = "an argument of aiohttp.ClientSession"
    if standard:
        known |= STANDARD
        expected += " or of SessionBuilder.standard()"
    for name in given:
        if name in known:
            continue
        if name in STANDARD:
            expected += "; SessionBuilder.standard() has one of that name"
        elif nearest := get_close_matches(name, sorted(known), 1):
            expected += f", perhaps {nearest[0]!r}"
        # Without the value, which may be a secret.
        raise bad_argument("argument", name, expected)
