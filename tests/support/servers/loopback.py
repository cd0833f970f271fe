"""Finds out whether a server can listen at an address of loopback."""

from __future__ import annotations

import errno
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
