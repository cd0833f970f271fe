"""Find what a request was charged for again, from its response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import aiohttp

_CHARGES: Final = "_aioretry_smithy_charges"
"""The attribute of a response with what its limits have charged, by their ids."""


def keep_charge(
    response: aiohttp.ClientResponse, limit: object, charge: object
) -> None:
    """Let :func:`charge_of` find a charge, as long as somebody has the response."""
    # One that a decorator has kept, and returns again, has that of the last request.
    vars(response).setdefault(_CHARGES, {})[id(limit)] = limit, charge


def charge_of(response: object, limit: object) -> object:
    """Return what a limit has charged for the attempt that brought a response."""
    kept = getattr(response, "__dict__", {}).get(_CHARGES, {})
    # A limit that is kept here has its id for itself.
    return kept.get(id(limit), (None, None))[1]
