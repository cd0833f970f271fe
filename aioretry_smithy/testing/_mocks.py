"""Make aioresponses work with the installed aiohttp."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import aiohttp

from .._bodies.new_response import HAS_STREAM_WRITER


def patch_aioresponses() -> AbstractContextManager[object]:
    """Make ``aioresponses`` work with aiohttp 3.14 and newer.

    ``aioresponses`` 0.7.9 cannot make a response there, because aiohttp needs a
    ``stream_writer``. With an older aiohttp this changes nothing.

    The call itself does it: a test suite needs one line in ``conftest.py``.
    As the context manager of a block, it undoes the change at the end of the block.

    Raises:
        ModuleNotFoundError: ``aioresponses`` is not installed.

    >>> with patch_aioresponses():
    ...     pass  # here aioresponses() works
    """
    try:
        core = import_module("aioresponses.core")
    except ModuleNotFoundError as error:
        message = f"{error}; patch_aioresponses() needs it: pip install aioresponses"
        raise ModuleNotFoundError(message, name=error.name) from None
    undo = ExitStack()
    # An outer call that has made the change also undoes it.
    if HAS_STREAM_WRITER and core.ClientResponse is not _MockedResponse:
        undo.callback(setattr, core, "ClientResponse", core.ClientResponse)
        core.ClientResponse = _MockedResponse  # type: ignore[attr-defined]
    return undo


class _MockedResponse(aiohttp.ClientResponse):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        options.setdefault("stream_writer", SimpleNamespace(output_size=0))
        super().__init__(*arguments, **options)
