"""The call of a function as its decorators see it."""

from __future__ import annotations

import pytest
from chains import Clock

from aioretry_smithy import RpcRequest


def test_request_has_the_name_and_the_arguments():
    """Arguments by position are in a tuple, those by name in a dictionary."""
    request = RpcRequest("fetch", ["eu"], {"page": 2})

    assert ("fetch", ("eu",), {"page": 2}) == (
        request.name,
        request.args,
        request.kwargs,
    )


def test_request_may_have_no_arguments():
    """Then both are empty."""
    request = RpcRequest("ping")

    assert ((), {}) == (request.args, request.kwargs)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": "read"}, ("read", (1,), {"a": 2})),
        ({"args": (3,)}, ("fetch", (3,), {"a": 2})),
        ({"kwargs": {}}, ("fetch", (1,), {})),
    ],
)
def test_copy_has_the_changes_alone(changes, expected):
    """The other parts stay, and so does the request itself."""
    request = RpcRequest("fetch", (1,), {"a": 2})
    copy = request.replace(**changes)

    assert expected == (copy.name, copy.args, copy.kwargs)
    assert ("fetch", (1,)) == (request.name, request.args)


def test_misspelt_change_is_a_type_error():
    """As of any function."""
    with pytest.raises(TypeError, match="arguments"):
        RpcRequest("fetch").replace(arguments=(1,))


@pytest.mark.parametrize("name", ["", None, 7])
def test_name_is_a_text(name):
    """A log without a name tells nothing."""
    with pytest.raises(ValueError, match=r"^name: .* \(expected: a str that is not"):
        RpcRequest(name)


def test_repr_shows_no_argument():
    """They may be secrets, or large."""
    request = RpcRequest("fetch", ("secret",), {"key": Clock()})

    assert "<RpcRequest fetch>" == repr(request)


def test_what_a_log_keeps_has_no_argument():
    """Neither of a request that was made by hand, nor of a changed one."""
    request = RpcRequest("fetch", ("large",))
    kept = request.without_body()
    renamed = request.replace(name="read").without_body()

    assert ("fetch", (), {}) == (kept.name, kept.args, kept.kwargs)
    assert ("read", ()) == (renamed.name, renamed.args)
