"""Connections that a server of the tests takes when its client has given them up."""

import asyncio
import contextlib
import gc
import socket

import pytest
from fault_server import FaultServer
from stream_server import StreamServer


@pytest.mark.parametrize("turns", range(6))
async def test_server_leaves_no_task_of_a_connection_that_it_took_late(turns, caplog):
    """However far it was taken when the server was to end; and no error is logged."""

    async def wait(reader, writer):
        await reader.read()

    async with StreamServer(wait) as server:
        client = socket.create_connection(("127.0.0.1", server.port))
        for _ in range(turns):
            await asyncio.sleep(0)
    client.close()

    assert {asyncio.current_task()} == asyncio.all_tasks()
    assert [] == caplog.messages


@pytest.mark.parametrize("turns", range(6))
async def test_server_of_faults_loses_no_connection_that_it_took_late(turns):
    """Python would warn of a socket that nobody has closed."""
    async with FaultServer() as server:
        # By then it waits for connections.
        await asyncio.sleep(0.01)
        with socket.create_connection((server.url.host, server.url.port)):
            for _ in range(turns):
                await asyncio.sleep(0)
    gc.collect()

    assert 1 == server.connected


async def test_server_takes_a_late_write_for_a_client_that_went_away():
    """With uvloop it raises no OSError."""

    async def talk(reader, writer):
        writer.transport.abort()
        await asyncio.sleep(0.05)
        writer.write(b"late")
        await writer.drain()

    async with StreamServer(talk) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()
        await asyncio.wait(server.served)

    assert [None] == [each.exception() for each in server.served]
