"""Say which statuses are errors of the server."""

from __future__ import annotations


def is_server_error(status: int | None) -> bool:
    """Say whether a status is 5xx; HTTP has no classes above, though servers send some.

    >>> [is_server_error(status) for status in (None, 499, 500, 599, 600, 999)]
    [False, False, True, True, False, False]
    """
    return status is not None and 500 <= status <= 599
