"""Make classes of requests out of others: aiohttp's, or users' own."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import ClientRequest

    Kind: TypeAlias = type[ClientRequest]


class RequestClasses:
    """Makes classes of requests out of others, one of each.

    None of them lives on for having been used once.

    Args:
        members: Returns what one has that the class given has not.
    """

    def __init__(self, members: Callable[[Kind], dict[str, object]]) -> None:
        self._members = members
        self._known: WeakKeyDictionary[Kind, weakref.ref[Kind]] = WeakKeyDictionary()

    def of(self, kind: Kind) -> Kind:
        """Return the class made of another; what is no class stays as it is."""
        if not isinstance(kind, type):
            # A mock, or a function.
            return kind
        known = self._known.get(kind)
        made = None if known is None else known()
        if made is None:
            members = {"__module__": kind.__module__, **self._members(kind)}
            # A class made by another chain is shielded already.
            bases = (kind,) if issubclass(kind, _Quiet) else (_Quiet, kind)
            metaclass: Callable[..., Kind] = type(kind)
            try:
                made = metaclass(kind.__name__, bases, members)
            except Exception:
                # Its metaclass wants more than a class statement has.
                return kind
            self._known[kind] = weakref.ref(made)
        return made


class _Quiet:
    """Stands before a user's class, to let it hear nothing of a class made of it."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Ask for none of the arguments that a subclass in the user's code has."""
