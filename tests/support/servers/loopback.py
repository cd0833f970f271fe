"""Finds out whether a server can listen at an address of loopback."""

from __future__ import annotations

import errno
import os
import socket

import pytest


def need_address(host: str) -> None:
    """Skip the test that runs now where loopback has no such address, as on macOS."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            add = f"sudo ifconfig lo0 alias {host}"
            pytest.skip(f"loopback has no address {host}; on macOS: {add}")


def bound(host: str, port: int = 0) -> socket.socket:
    """Make a socket that has a port, and does not listen yet."""
    made = socket.socket()
    made.setblocking(False)
    if os.name == "posix":
        # Connections that ended a moment ago do not matter.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made
