"""Arguments that are misspelt, and options of storages that only look so."""

from __future__ import annotations

import traceback

import pytest

pytest.importorskip("limits.aio")  # "limits" is a folder of these tests too

from aioretry_smithy.limits import SharedRateLimit

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
