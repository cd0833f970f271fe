"""Extras that are not installed: what to install."""

from __future__ import annotations


def missing_extra(extra: str, cause: ModuleNotFoundError) -> ModuleNotFoundError:
    """Make the error for a public module whose extra is not installed.

    >>> print(missing_extra("limits", ModuleNotFoundError(name="limits")))
    limits is missing: pip install "aioretry-smithy[limits]"
    """
    package = str(cause.name).partition(".")[0]
    message = f'{package} is missing: pip install "aioretry-smithy[{extra}]"'
    return ModuleNotFoundError(message, name=cause.name)
