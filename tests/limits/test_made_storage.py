"""Options of storages that are misspelt, and others that only look so."""

from __future__ import annotations

import traceback
from types import SimpleNamespace
from typing import ClassVar

import pytest

pytest.importorskip("limits.aio")  # "limits" is a folder of these tests too

from limits.aio.storage import Storage

from aioretry_smithy.limits import SharedRateLimit

REDIS = {"storage": "async+redis://localhost:6379", "implementation": "redispy"}
CLUSTER = {**REDIS, "storage": "async+redis+cluster://localhost:6379"}
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
        (REDIS, "pasword", ""),
        (CLUSTER, "pasword", ""),
    ],
)
def test_what_a_storage_does_not_know_is_refused(storage, name, meant):
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


class Particular(Storage):
    """A storage whose client makes no connection of its options alone."""

    STORAGE_SCHEME: ClassVar = ["async+particular"]
    base_exceptions = ConnectionError

    def __init__(self, uri, **options):
        super().__init__(uri)

        def connect(server, **options):
            raise AssertionError

        pool = SimpleNamespace(connection_class=connect, connection_kwargs=options)
        self.bridge = SimpleNamespace(storage=SimpleNamespace(connection_pool=pool))

    async def incr(self, *arguments, **options):
        raise AssertionError

    get = get_expiry = check = reset = clear = incr
    acquire_sliding_window_entry = get_sliding_window = incr


class Broken(Particular):
    """A storage with a mistake of its own."""

    STORAGE_SCHEME: ClassVar = ["async+broken"]

    def __init__(self, uri, **options):
        raise TypeError("an int is no str")


def test_an_error_about_something_else_is_the_storages_own():
    """No option is to blame for it."""
    with pytest.raises(TypeError, match="^an int is no str$"):
        made(storage="async+broken://", color="red")


def test_a_client_that_cannot_be_asked_has_to_find_out():
    """It may know the option."""
    assert "Particular" in repr(made(storage="async+particular://", color="red"))
