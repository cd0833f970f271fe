"""aioresponses beside the aiohttp that is installed."""

from __future__ import annotations

import sys

import aiohttp
import aioresponses
import pytest

from aioretry_smithy.testing import patch_aioresponses

URL = "http://h/orders"


@pytest.fixture(autouse=True)
def response_class(monkeypatch):
    """The class that aioresponses has by itself; it has it again after the test."""
    monkeypatch.setattr(aioresponses.core, "ClientResponse", aiohttp.ClientResponse)


async def mocked_text():
    with aioresponses.aioresponses() as mock:
        mock.get(URL, body="mocked")
        async with aiohttp.ClientSession() as session, session.get(URL) as response:
            return await response.text()


async def test_one_line_is_enough():
    """The call itself mends it, for as long as the process lasts."""
    patch_aioresponses()

    assert "mocked" == await mocked_text()
    assert "mocked" == await mocked_text()


async def test_block_is_undone_at_its_end():
    """A test that cares leaves nothing behind."""
    with patch_aioresponses():
        text = await mocked_text()

    assert "mocked" == text
    assert aiohttp.ClientResponse is aioresponses.core.ClientResponse


async def test_blocks_inside_each_other():
    """A fixture may mend what the conftest has mended."""
    with patch_aioresponses():
        with patch_aioresponses():
            pass
        text = await mocked_text()

    assert "mocked" == text
    assert aiohttp.ClientResponse is aioresponses.core.ClientResponse


async def test_blocks_that_overlap_leave_nothing_behind():
    """Blocks that end in the order in which they began undo it all the same."""
    first, second = patch_aioresponses(), patch_aioresponses()
    with first:
        pass
    with second:
        pass

    assert aiohttp.ClientResponse is aioresponses.core.ClientResponse


async def test_mocked_responses_are_of_aiohttp_s_class():
    """A test that asks for the class goes on passing."""
    with patch_aioresponses(), aioresponses.aioresponses() as mock:
        mock.get(URL, payload={"n": 1})
        async with aiohttp.ClientSession() as session, session.get(URL) as response:
            payload = await response.json()

    assert {"n": 1} == payload
    assert isinstance(response, aiohttp.ClientResponse)


def test_missing_aioresponses_says_what_to_install(monkeypatch):
    """The error names the package and the command."""
    monkeypatch.setitem(sys.modules, "aioresponses", None)
    monkeypatch.delitem(sys.modules, "aioresponses.core")

    with pytest.raises(ModuleNotFoundError, match=r": pip install aioresponses$"):
        patch_aioresponses()
