"""Let frozen classes with slots be extended."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any, TypeVar

_T = TypeVar("_T")


def extensible(kind: type[_T]) -> type[_T]:
    """Let subclasses of a frozen class with slots have attributes of their own.

    Its fields stay frozen, in subclasses too.

    Of a frozen class with slots, ``dataclass`` makes a second class, for which the
    methods that it wrote do not work: they raise a TypeError about ``super()`` where a
    subclass sets what is no field, or a name is misspelt.
    """
    changed: Any = kind
    names = frozenset(field.name for field in fields(changed))

    def refuse(instance: object, name: str, verb: str) -> None:
        if type(instance) is kind or name in names:
            raise FrozenInstanceError(f"cannot {verb} field {name!r}")

    def set_attribute(self: object, name: str, value: object) -> None:
        refuse(self, name, "assign to")
        object.__setattr__(self, name, value)

    def delete_attribute(self: object, name: str) -> None:
        refuse(self, name, "delete")
        object.__delattr__(self, name)

    changed.__setattr__, changed.__delattr__ = set_attribute, delete_attribute
    return kind
