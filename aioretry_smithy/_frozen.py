"""Let frozen classes with slots be extended."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any, TypeVar

_T = TypeVar("_T")


def extensible(kind: type[_T]) -> type[_T]:
    """Let subclasses of a frozen class have attributes of their own.

    ``dataclass`` makes a class with slots a second time, and the methods that it wrote
    know only the first. Of what is no field they say "super(type, obj): obj is not an
    instance", to a subclass as to who misspells a name.
    """
    changed: Any = kind
    names = frozenset(field.name for field in fields(changed))

    def check(self: object, name: str, verb: str) -> None:
        if type(self) is kind or name in names:
            raise FrozenInstanceError(f"cannot {verb} field {name!r}")

    def __setattr__(self: object, name: str, value: object) -> None:
        check(self, name, "assign to")
        object.__setattr__(self, name, value)

    def __delattr__(self: object, name: str) -> None:
        check(self, name, "delete")
        object.__delattr__(self, name)

    changed.__setattr__, changed.__delattr__ = __setattr__, __delattr__
    return kind
