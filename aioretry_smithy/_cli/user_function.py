"""Find a function of the user's by its name on the command line."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._errors import is_plain_function
from .._log.error_text import describe_error
from .._masking.mask import DEFAULT_MASK
from .arguments import UsageError

if TYPE_CHECKING:
    from types import ModuleType


def find_function(name: str) -> Any:
    """Import what ``MODULE:FUNCTION`` or ``path/file.py:FUNCTION`` names.

    Modules are looked for in the working directory too, and what a file imports also
    beside it.

    Raises:
        UsageError: There is no such thing, or importing it fails.
    """
    source, _, function = name.rpartition(":")
    if not source or not function:
        expected = "MODULE:FUNCTION or path/file.py:FUNCTION"
        raise UsageError(f"{name!r} (expected: {expected})")
    try:
        module = _import(source)
    except (Exception, SystemExit) as error:
        raise UsageError(f"cannot import {source!r}: {in_a_line(error)}") from None
    try:
        found = attrgetter(function)(module)
    except AttributeError as error:
        raise UsageError(f"{name!r}: {error}") from None
    if not is_plain_function(found):
        expected = "a plain function that returns a SessionBuilder"
        raise UsageError(f"{name!r} (expected: {expected})")
    return found


def in_a_line(error: BaseException) -> str:
    """Describe an error of the user's code."""
    return describe_error(error, DEFAULT_MASK)


def _import(source: str) -> ModuleType:
    path = Path(source)
    if path.suffix != ".py":
        sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(source)
    sys.path.insert(0, str(path.resolve().parent))
    spec: Any = importlib.util.spec_from_file_location(f"simulated {path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look for the module of their annotations there.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
