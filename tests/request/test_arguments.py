"""Copies of containers and buffers, and what may be in a header."""

import mmap
from array import array
from collections import ChainMap, UserDict, UserList, UserString, namedtuple
from collections.abc import Mapping
from http.cookies import SimpleCookie
from types import MappingProxyType

import pytest
from aiohttp.payload import PAYLOAD_REGISTRY, BytesPayload
from chains import bad_argument
from multidict import CIMultiDict, CIMultiDictProxy, MultiDict, MultiDictProxy

from aioretry_smithy import HttpRequest
from aioretry_smithy._request.arguments import (
    check_header_name,
    is_header_value,
    is_unchanged,
)

Pair = namedtuple("Pair", ["name", "value"])


class OwnList(list):
    """A list of a user's own."""


class OwnDict(dict):
    """A dictionary of a user's own."""


class OwnMultiDict(MultiDict):
    """A multidict of a user's own."""


class OwnHeaders(CIMultiDict):
    """Headers of a user's own."""


class Equal(Mapping):
    """A mapping that has a key twice, as those of some frameworks."""

    def __getitem__(self, name):
        return "1"

    def __iter__(self):
        return iter(["a"])

    def __len__(self):
        return 1

    def items(self):
        return [("a", "1"), ("a", "2")]


class Broken(UserDict):
    """A mapping that cannot be read."""

    def items(self):
        raise OSError("away")


class Model(dict):
    """A dictionary that has a payload of its own."""


class ModelPayload(BytesPayload):
    """Sends a model."""

    def __init__(self, value, **options):
        super().__init__(b"model", **options)


def copied(name, value):
    return HttpRequest("POST", "http://localhost/", **{name: value}).arguments[name]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"a": ["1", OwnList(["2"])]}, {"a": ["1", ["2"]]}),
        (OwnDict(a=UserList(["1"])), {"a": ["1"]}),
        (MappingProxyType({"a": {"b": ["1"]}}), {"a": {"b": ["1"]}}),
        (ChainMap({"a": "1"}, {"b": "2"}), {"a": "1", "b": "2"}),
        ([Pair("a", ["1"])], [("a", ["1"])]),
        ((Pair("a", "1"),), (("a", "1"),)),
        (UserList([("a", "1")]), [("a", "1")]),
        (MultiDictProxy(MultiDict(a=["1"])), MultiDict(a=["1"])),
        (OwnMultiDict([("a", "1"), ("a", "2")]), MultiDict([("a", "1"), ("a", "2")])),
        (OwnHeaders(A="1"), CIMultiDict(a="1")),
        (CIMultiDictProxy(OwnHeaders(A=["1"])), CIMultiDict(a=["1"])),
        (Equal(), MultiDict([("a", "1"), ("a", "2")])),
        ({"a": SimpleCookie({"b": "1"})}, {"a": SimpleCookie({"b": "1"})}),
        ({"a": {1, 2}}, {"a": {1, 2}}),
        ({"a": memoryview(b"1"), "b": bytearray(b"2")}, {"a": b"1", "b": b"2"}),
    ],
)
def test_copies_say_the_same(given, expected):
    """What aiohttp reads of a container it reads of the copy."""
    copy = copied("params", given)

    assert expected == copy
    assert given is not copy


@pytest.mark.parametrize(
    "value", ["a=1", UserString("a=1"), 1, object(), frozenset("a"), Broken(a="1")]
)
def test_what_nobody_can_copy_or_change_stays_itself(value):
    """It goes to aiohttp as it is, which complains where it has to."""
    assert value is copied("params", value)


def test_container_with_a_payload_of_its_own_keeps_its_class():
    """The payload is looked up by the class."""
    PAYLOAD_REGISTRY.register(ModelPayload, Model)
    try:
        given = Model(a="1")
        copy = copied("data", given)
    finally:
        PAYLOAD_REGISTRY._normal.remove((ModelPayload, Model))

    assert type(copy) is Model
    assert given == copy
    assert given is not copy


@pytest.mark.parametrize(
    ("make", "is_kept"),
    [
        (lambda: memoryview(b"123"), True),
        (lambda: memoryview(b"123")[1:], True),
        (lambda: memoryview(bytearray(b"123")), False),
        (lambda: memoryview(bytearray(b"123")).toreadonly(), False),
        (lambda: memoryview(array("i", [1, 2])).toreadonly(), False),
        (lambda: memoryview(mmap.mmap(-1, 3)).toreadonly(), False),
        (lambda: memoryview(mmap.mmap(-1, 3, access=mmap.ACCESS_READ)), True),
        (lambda: bytearray(b"123"), False),
    ],
)
def test_buffers_are_copied_where_anybody_can_write_them(make, is_kept):
    """A large file that is mapped to be read is not read into memory."""
    given = make()
    copy = copied("data", given)

    assert is_kept is (given is copy)
    assert bytes(given) == bytes(copy)


@pytest.mark.parametrize("name", ["headers", "cookies", "skip_auto_headers"])
def test_iterables_are_read_once(name):
    """One that is no container may give its items once only."""
    given = {"a": "1"}
    request = HttpRequest("GET", "http://localhost/", **{name: given.items()})

    given["a"] = "2"

    assert [("a", "1")] == request.given[name] == request.arguments[name]


def test_what_cannot_be_compared_may_have_changed():
    """A container of a user's own class, such as a vector, need not compare."""

    class Vector(dict):
        __hash__ = None

        def __eq__(self, other):
            raise ValueError("ambiguous")

    assert not is_unchanged({"params": Vector()}, {"params": Vector()})


@pytest.mark.parametrize(
    "name", ["", "X Key", "X-Key\r\n", "X:Key", "Schlüssel", 7, None]
)
def test_name_is_a_token(name):
    """No blank, no colon, no control character, nothing that is not ASCII."""
    with bad_argument("header", name, "a header name"):
        check_header_name(name)


@pytest.mark.parametrize("value", ["abc", "a b", "a\tb", "=?/+", '"quoted"'])
def test_value_may_have_blanks_inside(value):
    """The server gets it as it is."""
    assert is_header_value(value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "abc\n",
        "\nabc",
        "a\r\nX: 1",
        "a\0b",
        " abc",
        "abc ",
        "\x7f",
        "\xe9",
        "€",
        b"a",
        None,
    ],
)
def test_other_values_are_refused(value):
    """Line ends and control characters, blanks at the ends, what no byte stands for."""
    assert not is_header_value(value)
