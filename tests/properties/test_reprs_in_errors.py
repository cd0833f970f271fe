"""No view shows a secret that an exception quotes, however deep it lies in there."""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from chains import NOW, in_virtual_time, log_of, raised_from, retrying, session
from hostile_answers import views_of
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from aioretry_smithy import RequestLog, RetryStrategy

pytest.importorskip("rich", reason="needs the extra cli")

MARK = "c4n4ry"
TWICE = retrying(RetryStrategy.failsafe(NOW), max_total_attempts=2)

inside = st.text(max_size=8) | st.text("'\"\\ ,)}]>=&\n", max_size=8)
secrets = inside.map(lambda text: f"{MARK}{text}{MARK}")
names = st.sampled_from(
    "token accessToken X_Api_Key password cookies set_cookie auth client_secret".split()
)
plain = st.one_of(
    st.none(), st.integers(), st.text("ac '\"\\({[=:,", max_size=6), st.binary()
)


@dataclasses.dataclass
class Box:
    """Describes itself as many classes of users do."""

    token: Any
    note: Any


Pair = collections.namedtuple("Pair", "note password")
BasicAuth = collections.namedtuple("BasicAuth", "login word")


def as_json(name: str, value: object) -> str:
    """Quote a value as JSON, in which it has the name of a secret."""
    return json.dumps({"a": 1, name: repr(value), "b": 2})


@st.composite
def holders(draw: Any, values: Any, beside: Any) -> Any:
    """Draw an object that has a value under the name of a secret, and others."""
    name, value, other = draw(names), draw(values), draw(beside)
    return draw(
        st.sampled_from(
            [
                {"a": other, name: value, "b": other},
                {name.encode(): value, b"a": other},
                [("a", other), (name, value)],
                {"name": name, "value": value, "a": other},
                SimpleNamespace(a=other, **{name: value}),
                functools.partial(print, other, **{name: value}),
                CIMultiDict([("a", other), (name.replace("_", "-"), value)]),
                Box(value, other),
                Pair(other, value),
                BasicAuth(value, value),
                as_json(name, value),
            ]
        )
    )


def wrapped(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw what has an object with a secret in it, somewhere."""
    return st.one_of(
        holders(secrets | inner, plain | inner),
        st.tuples(plain, inner),
        st.lists(inner, min_size=1, max_size=2),
        inner.map(lambda value: {"a": value}),
        inner.map(ValueError),
        inner.map(repr),
        inner.map(str),
        inner.map(lambda value: json.dumps({"a": repr(value)})),
    )


objects = st.recursive(
    holders(secrets | secrets.map(str.encode), plain), wrapped, max_leaves=4
)


@st.composite
def errors(draw: Any) -> Exception:
    """Draw an exception that quotes such an object, as users write them."""
    value = draw(objects)
    kind = draw(
        st.sampled_from([OSError, aiohttp.ClientError, aiohttp.ServerDisconnectedError])
    )
    error = draw(
        st.sampled_from(
            [
                kind(value),
                kind(f"failed: {value!r}"),
                kind(f"{value} of 3, n={value!r}"),
            ]
        )
    )
    return raised_from(error, ValueError(value))


@given(first=errors(), last=errors())
def test_no_view_shows_a_secret_of_an_exception(first, last, tmp_path_factory):
    """Whatever class has it, and however often it was quoted."""
    folder = tmp_path_factory.getbasetemp()

    async def call() -> RequestLog:
        return await log_of(session([first, last], TWICE))

    log = in_virtual_time(call())
    shown = {**views_of(log, folder), "notes": "\n".join(last.__notes__)}
    assert [] == [name for name, text in shown.items() if MARK in text]
