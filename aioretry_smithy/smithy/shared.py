"""Base classes of objects that are never copied, and never pickled."""

from __future__ import annotations

from typing import NoReturn, Self


class NeverCopied:
    """An object whose copy is the object itself.

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
    """The same for an object with a state, which other processes cannot share."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        raise TypeError(f"{kind} cannot be pickled: it holds shared state")
