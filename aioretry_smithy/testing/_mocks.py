"""Let aioresponses make responses of the aiohttp that is installed."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import aiohttp

from .._bodies.new_response import HAS_STREAM_WRITER


def patch_aioresponses() -> AbstractContextManager[object]:
    """Mend ``aioresponses`` where its responses lack what aiohttp asks for.

    ``aioresponses`` 0.7.9 cannot make a response with aiohttp 3.14 or newer, which asks
    for a ``stream_writer``. Where nothing is amiss, nothing is changed.

    The call itself does it: one line in ``conftest.py`` is all that a test suite needs.
    Used as the context manager of a block, it is undone at the end of the block.

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
    # Mended already, it is for the one who did that to undo it.
    if HAS_STREAM_WRITER and core.ClientResponse is not _MockedResponse:
        undo.callback(setattr, core, "ClientResponse", core.ClientResponse)
        core.ClientResponse = _MockedResponse  # type: ignore[attr-defined]
    return undo


class _MockedResponse(aiohttp.ClientResponse):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        options.setdefault("stream_writer", SimpleNamespace(output_size=0))
        super().__init__(*arguments, **options)
