"""Name the statuses that are errors of the server."""

from __future__ import annotations

from typing import Final

SERVER_ERRORS: Final = frozenset(range(500, 600))
"""5xx; HTTP has no classes above, though servers send some."""
