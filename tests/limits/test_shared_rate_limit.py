"""A rate that processes share by a storage of the library ``limits``."""

import asyncio
import sys
import time
import traceback

import pytest
from chains import URL, Scripted, after, now, retrying, session, status_and_log

pytest.importorskip("limits.aio")  # "limits" is a folder of these tests too

import limits
import yarl
from limits.aio.storage import MemoryStorage, Storage
from limits.aio.storage.base import SlidingWindowCounterSupport

from aioretry_smithy import (
    RateLimitError,
    RateLimitingClient,
    ResponseTimeoutError,
    SessionBuilder,
    unwrap,
)
from aioretry_smithy.limits import SharedRateLimit, StoredWindow

limiting = RateLimitingClient.new_decorator


@pytest.fixture(autouse=True)
def _wall_clock(monkeypatch):
    """Let the storages be told the time of the loop."""
    monkeypatch.setattr(time, "time", lambda: 1000.0 + now())


@pytest.fixture
async def memory():
    """A storage in memory, which forgets old turns in a task of its own."""
    storage = MemoryStorage()
    yield storage
    if storage.timer is not None:
        await storage.timer


class Failing(MemoryStorage):
    """A storage that is away, after a while of silence."""

    STORAGE_SCHEME = None

    def __init__(self, silence=0.0):
        super().__init__()
        self.silence = silence
        self.is_away = True

    async def acquire_entry(self, *arguments, **options):
        await asyncio.sleep(self.silence)
        if self.is_away:
            raise ConnectionError("no route")
        return await super().acquire_entry(*arguments, **options)


class Counter(Storage, SlidingWindowCounterSupport):
    """A storage without moving windows, such as Memcached, around one in memory."""

    STORAGE_SCHEME = None
    base_exceptions = ConnectionError

    def __init__(self, memory):
        super().__init__()
        self.memory = memory

    async def acquire_sliding_window_entry(self, *arguments):
        return await self.memory.acquire_sliding_window_entry(*arguments)

    async def get_sliding_window(self, *arguments):
        return await self.memory.get_sliding_window(*arguments)

    async def clear_sliding_window(self, key, expiry):
        raise AssertionError

    incr = get = get_expiry = check = reset = clear = clear_sliding_window


def by_host(ctx, request):
    """Limit each host."""
    return request.url.host


async def ends_of(calls):
    """Return when each of the calls ended."""

    async def end(call):
        await call
        return now()

    return await asyncio.gather(*map(end, calls))


async def test_a_rate_is_kept_in_a_moving_window(memory):
    """The next turn is there when the oldest one is as old as the window."""
    limit = SharedRateLimit(memory, "2/second", key="orders")
    async with Scripted([200] * 9, limiting(limit)) as scripted:
        await scripted.get()
        await asyncio.sleep(0.5)
        ends = await ends_of(scripted.get() for _ in range(4))

    assert [0.5, 1.0, 1.5, 2.0] == [round(end, 2) for end in ends]


async def test_a_function_says_what_is_limited(memory):
    """By the context and the request."""
    limit = SharedRateLimit(memory, "1/minute", key=by_host)
    async with Scripted([200] * 9, limiting(limit, timeout=0.0)) as scripted:
        statuses = [await scripted.get(f"http://{host}/") for host in "aba"]

    assert [200, 200, RateLimitError] == statuses


async def test_a_key_has_to_be_a_string(memory):
    """The caller of the request gets the error."""
    limit = SharedRateLimit(memory, "1/minute", key=lambda ctx, request: None)
    async with Scripted([200] * 9, limiting(limit)) as scripted:
        with pytest.raises(ValueError, match="^key: None .*returns a str"):
            await scripted.get()


class Encoding(MemoryStorage):
    """A storage that sends its keys, as UTF-8."""

    STORAGE_SCHEME = None

    async def acquire_entry(self, key, *arguments, **options):
        key.encode()
        return await super().acquire_entry(key, *arguments, **options)


async def test_a_key_that_is_no_text_is_limited_too():
    """It does not open the storage for all other keys."""
    storage = Encoding()
    limit = SharedRateLimit(storage, "1/minute", key=lambda ctx, request: "\udcff")
    async with Scripted([200] * 9, limiting(limit, timeout=0.0)) as scripted:
        statuses = [await scripted.get() for _ in range(2)]
    await storage.timer

    assert [200, RateLimitError] == statuses


async def test_a_refusal_says_when_there_is_more(memory):
    """No turn is waited for that comes too late."""
    limit = SharedRateLimit(memory, "1/minute", key="orders")
    async with Scripted([200] * 9, limiting(limit, timeout=5.0)) as scripted:
        await scripted.get()
        with pytest.raises(RateLimitError) as caught:
            await scripted.session.get("http://a/")

    assert (limit, 60.0) == (caught.value.limit, round(caught.value.retry_in, 3))
    assert (
        "SharedRateLimit(MemoryStorage, '1/minute', key='orders'):"
        " no turn within the timeout of 5.0 s; next in 60.000 s"
    ) == str(caught.value)


async def test_a_wait_is_in_the_log_and_a_question_is_not(memory):
    """The attempt begins after the wait."""
    limit = SharedRateLimit(memory, "1 per 5 seconds", key="orders")
    chain = limiting(limit), retrying(0.5)
    status, log = await status_and_log(session([503, after(1.0, 200)], *chain))

    first, second = log.children
    assert (200, None, None) == (status, log.delay, log.delay_source)
    assert (5.0, "rate_limit") == (round(first.delay, 2), first.delay_source)
    assert 1.0 == second.duration


async def test_calls_that_wait_are_counted(memory):
    """Under all keys together."""
    limit = SharedRateLimit(memory, "1/second", key=lambda ctx, request: request.method)
    async with Scripted([200] * 9, limiting(limit)) as scripted:
        calls = [asyncio.create_task(scripted.get()) for _ in range(4)]
        await asyncio.sleep(0.5)

        assert 3 == limit.pending
        await asyncio.gather(*calls)
        assert 0 == limit.pending
        limits = unwrap(scripted.session, RateLimitingClient).limits

    assert {"all": limit} == limits


@pytest.mark.parametrize(
    ("settings", "statuses"),
    [({}, [200, 200]), ({"on_storage_error": "refuse"}, [RateLimitError] * 2)],
    ids=["allow", "refuse"],
)
async def test_a_storage_that_is_away_decides_nothing(settings, statuses, caplog):
    """The setting does, and a warning says so."""
    limit = SharedRateLimit(Failing(), "1/minute", key="orders", **settings)
    async with Scripted([200] * 9, limiting(limit)) as scripted:
        assert statuses == [await scripted.get() for _ in range(2)]

    (message,) = caplog.messages
    verb = "are refused" if settings else "go through"
    assert f"key='orders'): no answer from the storage, so requests {verb}" in message


async def test_a_storage_that_is_silent_does_not_outlast_the_deadline():
    """The call ends with it, and says what it waited for."""
    limit = SharedRateLimit(Failing(silence=9.0), "1/minute", key="orders")
    client = session([200], limiting(limit), retrying(0.5), timeout=0.5)
    async with client:
        with pytest.raises(ResponseTimeoutError) as caught:
            await client.get(URL)

    assert 0.5 == now()
    assert isinstance(caught.value.__cause__, RateLimitError)
    await asyncio.sleep(1.0)  # the question goes on


async def test_a_storage_without_moving_windows_counts(memory):
    """The requests of the window before weigh less and less."""
    limit = SharedRateLimit(Counter(memory), "4/second", key="orders")
    async with Scripted([200] * 9, limiting(limit)) as scripted:
        ends = await ends_of(scripted.get() for _ in range(7))
    await memory.timer

    assert [0.0] * 4 == [round(end, 2) for end in ends[:4]]
    assert [1.0, 1.25, 1.5] == [round(end, 2) for end in ends[4:]]


async def test_a_turn_that_is_freed_meanwhile_is_asked_for_again(memory):
    """It was not free when it was asked for, and is when it is looked at."""

    class Late(MemoryStorage):
        STORAGE_SCHEME = None

        async def acquire_entry(self, key, limit, expiry, amount=1):
            return False

    rate = StoredWindow(Late(), limits.parse("1/minute"))

    assert 0.001 == await rate.take("orders")


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("storage: 'redis' ", {"storage": "redis://user:password@localhost"}),
        ("storage: None", {"storage": None}),
        ("storage_options: 'a, b'", {"storage": MemoryStorage(), "a": 1, "b": 2}),
        ("rate: '5'", {"rate": "5"}),
        ("rate: '5/second; 9/minute'", {"rate": "5/second; 9/minute"}),
        ("rate: '0/second'", {"rate": "0/second"}),
        ("rate: 5", {"rate": 5}),
        ("key: ''", {"key": ""}),
        ("key: None", {"key": None}),
        ("on_storage_error: 'wait'", {"on_storage_error": "wait"}),
        ("on_storage_error: []", {"on_storage_error": []}),
    ],
)
def test_bad_arguments_are_refused(argument, options):
    """Passwords are not shown."""
    usual = {"storage": "async+memory://", "rate": "5/second", "key": "orders"}
    with pytest.raises(ValueError) as caught:
        SharedRateLimit(**usual | options)

    assert str(caught.value).startswith(argument)


def test_a_storage_is_made_of_a_uri_and_options():
    """Which are the storage's own; the limit describes itself without them."""
    uri = "async+redis://:password@localhost:6379"
    rate = limits.RateLimitItemPerMinute(5)
    pytest.importorskip("redis.asyncio")
    limit = SharedRateLimit(uri, rate, key=by_host, implementation="redispy")
    decorator = limiting(limit)

    assert "SharedRateLimit(RedisStorage, '5 per 1 minute', key=by_host)" == repr(limit)
    assert repr(limit) in SessionBuilder().decorator(decorator).describe()


@pytest.mark.parametrize(
    ("storage", "shown"),
    [
        ("async+paper://", "'async+paper'"),
        ("async+paper://user:s3cret@localhost", "'async+paper'"),
        ("async+paper//user:s3cret@localhost", "<class 'str'>"),
        ("paper://user:s3cret@localhost", "'paper'"),
        ("s3cret@localhost:6379", "<class 'str'>"),
        ("async+redis://[s3cret", "'async+redis'"),
        (b"async+redis://user:s3cret@localhost", "<class 'bytes'>"),
        (yarl.URL("redis://user:s3cret@localhost"), "<class 'yarl.URL'>"),
    ],
)
def test_what_names_no_storage_is_refused_without_its_password(storage, shown):
    """The scheme is no secret."""
    with pytest.raises(ValueError) as caught:
        SharedRateLimit(storage, "5/second", key="orders")

    assert f"storage: {shown} (expected: an asynchronous storage, or the URI of" in (
        str(caught.value)
    )
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("uri", [":s3/cret@localhost:1", ":pw@localhost:s3cret"])
def test_a_uri_that_its_storage_cannot_read_is_refused_without_its_password(uri):
    """The storage's own error shows all of it, and its cause the beginning."""
    pytest.importorskip("redis.asyncio")
    uri = f"async+redis://{uri}"
    with pytest.raises(ValueError, match="^storage: 'async.redis' ") as caught:
        SharedRateLimit(uri, "5/second", key="orders", implementation="redispy")

    assert "s3" not in "".join(traceback.format_exception(caught.value))


def test_a_library_that_is_missing_is_named(monkeypatch):
    """By the error of the library limits."""
    monkeypatch.setitem(sys.modules, "coredis", None)
    with pytest.raises(limits.errors.ConfigurationError, match="'coredis'"):
        SharedRateLimit("async+redis://:s3cret@localhost", "5/second", key="orders")


def test_options_that_have_no_storage_to_go_to_are_named_alone():
    """Their values may be secrets."""
    storage = MemoryStorage()
    with pytest.raises(ValueError, match="^storage_options: 'password' ") as caught:
        SharedRateLimit(storage, "5/second", key="orders", password="s3cret")

    assert "s3cret" not in str(caught.value)


REDIS = {"storage": "async+redis://localhost:6379", "implementation": "redispy"}
MEMORY = {"storage": "async+memory://"}


def made(**options):
    return SharedRateLimit(rate="5/second", key="orders", **options)


@pytest.mark.parametrize(
    ("storage", "name", "meant"),
    [
        (MEMORY, "costs", ", perhaps 'cost'"),
        (MEMORY, "on_storage_errors", ", perhaps 'on_storage_error'"),
        (MEMORY, "host", ", perhaps 'cost'"),
        (MEMORY, "timeout", ""),
        (REDIS, "costs", ", perhaps 'cost'"),
        (REDIS, "actuals", ", perhaps 'actual'"),
    ],
)
def test_a_misspelt_argument_is_refused(storage, name, meant):
    """Where the limit is made, not when the storage is asked, and without its value."""
    if storage is not MEMORY:
        pytest.importorskip("redis.asyncio")
    secret = "s3" + "cret"
    with pytest.raises(ValueError) as caught:
        made(**storage, **{name: secret})

    expected = f"storage_options: {name!r} (expected: an option of the storage{meant})"
    assert expected == str(caught.value)
    assert secret not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "options",
    [
        {**MEMORY, "wrap_exceptions": True},
        {**REDIS, "host": "localhost", "port": 6379, "wrap_exceptions": True},
        {**REDIS, "password": "a", "socket_timeout": 5, "retry_on_error": []},
    ],
)
def test_what_a_storage_knows_is_passed_on(options):
    """Also where it looks like a misspelt argument."""
    if options["storage"] is not MEMORY["storage"]:
        pytest.importorskip("redis.asyncio")

    assert "key='orders'" in repr(made(**options))
