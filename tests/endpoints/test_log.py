"""Endpoints in the views of a call, and in errors.

Of the cases of endpoints.md (f): 7, 110, 127 to 131.
"""

import asyncio
import copy
import io
import pickle

import aiohttp
import pytest
from balanced import Fleet, call, group_of
from chains import SAFELY, after, refused, retrying

from aioretry_smithy import (
    DynamicEndpointGroup,
    EmptyEndpointGroupError,
    Endpoint,
    EndpointGroup,
    EndpointGroupError,
    EndpointSelectionTimeoutError,
    RetrySafety,
    UnprocessedRequestError,
    is_unprocessed,
    retry_safety,
)
from aioretry_smithy._endpoints.roster import why_out


@pytest.fixture
def group():
    """Three servers whose names are of different lengths."""
    return EndpointGroup.of(
        "http://a.example",
        Endpoint("http://bücher.example:8080/v1"),
        Endpoint("http://c.example", address="10.0.0.3"),
        selection=group_of()._selection,
        name="orders",
    )


@pytest.fixture
def fleet():
    """One refuses, one fails, one answers."""
    return Fleet(a=refused(), **{"xn--bcher-kva": after(0.25, 503)}, c=after(0.5, 200))


@pytest.fixture
async def log(group, fleet):
    """The log of a call that visits all three."""
    async with fleet.session(group, retrying(SAFELY, max_total_attempts=3)) as client:
        _, log = await call(client)
    return log


@pytest.fixture
def rich_shown():
    """What rich shows, without colours."""
    console = pytest.importorskip("rich.console", reason="needs the extra cli")

    def show(log, width=160):
        made = console.Console(file=io.StringIO(), width=width, _environ={})
        made.print(log)
        return made.file.getvalue()

    return show


class TestTree:
    """The tree of a call."""

    async def test_names_the_endpoint_of_each_attempt(self, log):
        """Cases 128 and 130: in a column of its own, whatever the lengths."""
        first, *rest = log.render().splitlines()
        columns = [line[3:] for line in rest]

        assert (
            "GET http://a.example/orders  ->  200 OK  in 0.750 s, 3 attempts" == first
        )
        assert [
            "1  a.example                      ClientConn",
            "2  xn--bcher-kva.example:8080/v1  503 Servic",
            "3  10.0.0.3:80                    200 OK    ",
        ] == [column[:44] for column in columns]
        assert 1 == len(
            {line.index(" s ") if " s " in line else line.rindex(" s") for line in rest}
        )

    async def test_mixed_with_none(self):
        """Case 130: one that found no endpoint leaves its column empty."""
        group = DynamicEndpointGroup(selection_timeout=0.5, name="orders")
        async with Fleet().session(
            group, retrying(SAFELY, max_total_attempts=3)
        ) as client:
            task = asyncio.create_task(call(client))
            await asyncio.sleep(0.75)
            group.set_endpoints(["http://a.example"])
            _, log = await task

        _, first, second = log.render().splitlines()
        assert first.startswith("├─ 1             EndpointSelectionTimeoutError: ")
        assert second.startswith("└─ 2  a.example  200 OK")

    async def test_error_of_an_empty_group_lists_each_and_why(self):
        """Case 131: those that are out, and until when."""
        group = EndpointGroup.of(
            Endpoint("http://a.example", weight=0), "http://b.example", name="orders"
        )
        async with Fleet(b=refused()).session(group) as client:
            await call(client)
        assert {"a.example": "weight 0", "b.example": "well"} == (
            why_out([next(iter(group.states.values())).roster])
        )
        two = group_of("ab")
        async with Fleet(a=refused()).session(two) as client:
            await call(client)
            why = why_out([next(iter(two.states.values())).roster])

        assert why["a.example"].startswith("out for ")
        assert why["a.example"].endswith(" s: connect_failures")
        assert "well" == why["b.example"]


class TestPictures:
    """The call in time."""

    async def test_svg(self, log, tmp_path):
        """Case 128: by day and by night."""
        log.to_svg(tmp_path / "call.svg")
        drawn = (tmp_path / "call.svg").read_text(encoding="utf-8")

        for name in ("a.example", "xn--bcher-kva.example:8080/v1", "10.0.0.3:80"):
            assert name in drawn

    async def test_rich(self, log, rich_shown):
        """Case 128: in the same columns."""
        shown = rich_shown(log)

        for name in (
            "1  a.example  ",
            "2  xn--bcher-kva.example:8080/v1  ",
            "3  10.0.0.3:80  ",
        ):
            assert name in shown

    async def test_rich_of_one_attempt(self, rich_shown):
        """Case 129: in its headline."""
        async with Fleet().session(group_of("a")) as client:
            _, log = await call(client)

        assert "at a.example" in rich_shown(log)


KINDS = [EndpointGroupError, EmptyEndpointGroupError, EndpointSelectionTimeoutError]
LISTED = {"a.example": "weight 0", "b.example": "out for 2.000 s: retry_after"}


@pytest.mark.parametrize("kind", KINDS)
def test_text_lists_each_endpoint_and_why(kind):
    """Case 131: with the name of the group."""
    error = kind("orders", "empty", LISTED)

    assert (
        "endpoint group 'orders': empty: a.example (weight 0), "
        "b.example (out for 2.000 s: retry_after)"
    ) == str(error)
    assert ("orders", "empty", LISTED) == (error.group, error.reason, error.endpoints)


def test_text_of_none():
    """Case 131: there is nothing to list."""
    assert "endpoint group 'orders': empty" == str(
        EndpointGroupError("orders", "empty", {})
    )


@pytest.mark.parametrize("kind", KINDS)
def test_any_method_may_be_sent_again(kind):
    """Case 110: nothing was sent."""
    error = kind("orders", "empty", {})

    assert isinstance(error, UnprocessedRequestError)
    assert isinstance(error, aiohttp.ClientError)
    assert is_unprocessed(error)
    assert RetrySafety.YES is retry_safety(error)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "way", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))]
)
def test_can_be_copied(kind, way):
    """Case 127: with all that it says."""
    copied = way(kind("orders", "empty", LISTED))

    assert (kind, "orders", LISTED) == (type(copied), copied.group, copied.endpoints)
    assert str(kind("orders", "empty", LISTED)) == str(copied)
