"""smithy-python beside this library."""

from types import SimpleNamespace

import pytest
from hypothesis import strategies as st

from aioretry_smithy import smithy

# It needs Python 3.12.
exceptions = pytest.importorskip("smithy_core.exceptions")
MODULES = [
    pytest.importorskip(f"smithy_core.{name}")
    for name in (
        "retries",
        "interfaces.retries",
        "aio.retries",
        "aio.interfaces.retries",
    )
]


def their_names():
    """Return what smithy-python makes public for retries."""
    names = {
        name: value
        for module in MODULES
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
    }
    of_errors = ("CallError", "ClientTimeoutError", "Fault", "ModeledError")
    names |= {name: getattr(exceptions, name) for name in (*of_errors, "RetryError")}
    return names | {"RetryStrategyType": MODULES[0].RetryStrategyType}


NAMES = their_names()
THEIRS = SimpleNamespace(**NAMES)
SIDES = (THEIRS, smithy)

known = st.fixed_dictionaries(
    {
        "is_retry_safe": st.sampled_from([True, True, True, True, False]),
        "fault": st.sampled_from(["client", "server", None]),
        "is_throttling_error": st.booleans(),
        "is_timeout_error": st.booleans(),
    },
    optional={"retry_after": st.none() | st.floats(-1, 60)},
)
