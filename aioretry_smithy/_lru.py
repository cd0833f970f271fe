"""Keep one value per key, for a limited number of recently used keys."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

from ._errors import bad_argument

if TYPE_CHECKING:
    from collections.abc import Callable

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
        if not callable(factory):
            raise bad_argument("factory", factory, "a callable that takes the key")
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
