"""Ctrl-C ends a simulation of very many clients, in a process of its own."""

import asyncio
import contextlib
import signal
import sys

import pytest
from command_line import needs_posix

pytestmark = pytest.mark.slow

CHAINS = """
from aioretry_smithy import SessionBuilder

def chain():
    print("made", flush=True)
    return SessionBuilder.standard()
"""
HEARS_CTRL_C = """
import runpy, signal

# A shell lets what it runs in the background ignore the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("aioretry_smithy", run_name="__main__", alter_sys=True)
"""
PATIENCE = 20.0
"""Seconds to end in, on a machine that is busy; to make all clients takes minutes."""


@needs_posix("Ctrl-C for one process")
@pytest.mark.parametrize("made", [1, 300])
async def test_ctrl_c_ends_it_while_the_clients_are_made(tmp_path, made):
    """At once, with the exit code that other commands have, and without a word."""
    file = tmp_path / "chains.py"
    file.write_text(CHAINS)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", HEARS_CTRL_C),
        *("simulate", f"{file}:chain", "--clients", "100000"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    for _ in range(made):
        assert b"made\n" == await process.stdout.readline()
    process.send_signal(signal.SIGINT)
    try:
        async with asyncio.timeout(PATIENCE):
            _, errors = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()

    assert (130, b"") == (process.returncode, errors)
