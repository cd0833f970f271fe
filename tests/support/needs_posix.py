"""Skips tests where there is no POSIX, which is on Windows, and says what they need."""

from __future__ import annotations

import os

import pytest


def needs_posix(what: str) -> pytest.MarkDecorator:
    """Mark a test that needs something that Windows does not have."""
    return pytest.mark.skipif(os.name == "nt", reason=f"needs POSIX: {what}")
