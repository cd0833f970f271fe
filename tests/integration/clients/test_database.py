"""A client of a database, on a plain socket, whose server drops connections."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest
from stream_server import StreamServer
from until import until

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    CircuitBreaker,
    CircuitBreakerRpcClient,
    FailFastError,
    RetryingRpcClient,
    RetryRule,
    rpc,
)

DROPPED = RetryRule(exceptions=[ConnectionError], backoff=Backoff.fixed(0.01))


class Database:
    """Keeps rows; hangs up at the moments that *faults* names, in turn."""

    def __init__(self):
        self.rows = {}
        self.faults = []
        self.silent_at = None

    async def handle(self, reader, writer):
        changes = {}
        while line := (await reader.readline()).decode().strip():
            if await self.fails(line, reader, writer):
                return
            if line == "COMMIT":
                self.rows |= changes
            elif line.startswith("INSERT"):
                _, key, value = line.split()
                changes[key] = value
            if line == "COMMIT" and await self.fails("after COMMIT", reader, writer):
                return
            writer.write(b"OK\n")

    async def fails(self, moment, reader, writer):
        """Say whether the connection has ended at this moment."""
        if moment == self.silent_at:
            self.silent_at = None
            with suppress(ConnectionError):
                await reader.read()  # until the client hangs up
            return True
        if moment not in self.faults[:1]:
            return False
        del self.faults[0]
        writer.transport.abort()
        return True


class Connection:
    """The parts of a driver such as asyncpg: statements and transactions."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    async def execute(self, statement):
        self.writer.write(f"{statement}\n".encode())
        if not await self.reader.readline():
            raise ConnectionResetError(f"connection was closed in {statement}")

    @asynccontextmanager
    async def transaction(self):
        await self.execute("BEGIN")
        yield
        await self.execute("COMMIT")


class Pool:
    """Lends connections, and keeps none that failed or was cut."""

    def __init__(self, port):
        self.port, self.idle = port, []

    @asynccontextmanager
    async def acquire(self):
        if self.idle:
            connection = self.idle.pop()
        else:
            connection = Connection(
                *await asyncio.open_connection("127.0.0.1", self.port)
            )
        try:
            yield connection
        except BaseException:
            connection.writer.transport.abort()
            raise
        self.idle.append(connection)

    async def close(self):
        for connection in self.idle:
            connection.writer.close()
            await connection.writer.wait_closed()


@pytest.fixture
def database():
    return Database()


@pytest.fixture
async def pool(database):
    """Connections to the database, all of which have ended afterwards."""
    async with StreamServer(database.handle) as server:
        pool = Pool(server.port)
        yield pool
        await pool.close()
        await until(lambda: all(task.done() for task in server.served))


def inserting(*decorators, **settings):
    """Return a function that writes a row in a transaction."""

    @rpc(*decorators, RetryingRpcClient.new_decorator(DROPPED, **settings))
    async def insert(pool, number):
        async with pool.acquire() as connection, connection.transaction():
            await connection.execute(f"INSERT {number} {number}")

    return insert


@pytest.mark.parametrize(
    "moment", ["BEGIN", "INSERT debit -7", "INSERT credit 7", "COMMIT", "after COMMIT"]
)
async def test_transaction_is_made_again_as_a_whole(
    database, pool, moment, example, logs
):
    """Wherever the connection breaks: a new one begins at the beginning."""
    database.faults = [moment]

    await example("with_a_database").transfer(pool, 7)

    assert {"debit": "-7", "credit": "7"} == database.rows
    first, second = logs[0].children
    assert ConnectionResetError is type(first.response_cause)
    assert second.response_cause is None
    assert 1 == len(pool.idle)


@pytest.mark.slow
async def test_transaction_that_hangs_is_cut_and_made_again(
    database, pool, example, logs
):
    """Its connection is in the middle of something, and is not used again."""
    database.silent_at = "INSERT credit 7"

    await example("with_a_database").transfer(pool, 7)

    assert {"debit": "-7", "credit": "7"} == database.rows
    assert AttemptTimeoutError is type(logs[0].children[0].response_cause)
    assert 1 == len(pool.idle)


async def test_circuit_of_a_database_that_is_down_opens(database, pool):
    """Calls are refused then, without a connection."""
    database.faults = ["BEGIN"] * 9
    breaker = CircuitBreaker("database", minimum_request_threshold=3)
    insert = inserting(
        CircuitBreakerRpcClient.new_decorator(breaker), max_total_attempts=3
    )

    with pytest.raises(ConnectionResetError):
        await insert(pool, 7)
    with pytest.raises(FailFastError):
        await insert(pool, 7)

    assert {} == database.rows
    assert 6 == len(database.faults)


async def test_many_transactions_survive_connections_that_drop(database, pool, logs):
    """Each is carried out, in as many attempts as its connections broke."""
    database.faults = ["COMMIT"] * 20
    insert = inserting(max_total_attempts=30)

    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(insert(pool, number))

    assert {str(number): str(number) for number in range(20)} == database.rows
    assert 40 == sum(log.total_attempts for log in logs)
