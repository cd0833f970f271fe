"""Freeze values, keep objects from being copied, and keep the newest by key."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from typing import Any, Generic, NoReturn, Self, TypeVar

from . import _checks as check
from ._errors import bad_argument

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


class NeverCopied:
    """Base class of objects that are never copied: a copy is the original.

    Settings are copied by libraries that know nothing of quotas and tokens: two quotas
    in place of one would allow twice as many retries, a copied token would have a
    second use, and with a copied strategy it would not find its issuer.
    """

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


class Shared(NeverCopied):
    """Base class of objects with shared state, which are never copied or pickled."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        raise TypeError(f"{kind} cannot be pickled: it holds shared state")


V = TypeVar("V")


class BoundedMap(Generic[V]):
    """Values made on demand, one per key; the least recently used go first.

    It is bounded because keys come from URLs, and a crawler meets any number of them.

    Raises:
        ValueError: An argument is not as described.

    >>> lengths = BoundedMap(len, max_size=2)
    >>> [lengths.get(key) for key in ("a", "bb", "ccc")]
    [1, 2, 3]
    >>> len(lengths)
    2
    """

    __slots__ = ("_factory", "_kind", "_max_size", "_values")

    def __init__(
        self,
        factory: Callable[[str], V],
        max_size: int = 1024,
        *,
        kind: type[V] | None = None,
    ) -> None:
        check.factory(factory)
        if type(max_size) is not int or max_size < 1:
            raise bad_argument("max_size", max_size, "an int > 0")
        self._factory = factory
        self._kind = kind
        self._max_size = max_size
        self._values: OrderedDict[str, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def copy(self) -> dict[str, V]:
        """Return the values that are kept, the least recently used first."""
        return dict(self._values)

    def get(self, key: str) -> V:
        """Return the value of *key*, and make it for a new key.

        Raises:
            ValueError: The factory returned a value of another class.
        """
        values = self._values
        known = values.get(key)
        if known is not None:
            values.move_to_end(key)
            return known
        value = self._factory(key)
        if self._kind is not None and not isinstance(value, self._kind):
            raise bad_argument(f"factory({key!r})", value, f"a {self._kind.__name__}")
        values[key] = value
        if len(values) > self._max_size:
            values.popitem(last=False)
        return value
