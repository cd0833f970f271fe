"""A plugin: the examples in docstrings find public names and methods."""

import asyncio
import inspect
import logging

import aiohttp
import pytest
from yarl import URL

import aioretry_smithy
import aioretry_smithy.smithy
import aioretry_smithy.testing

FACADES = (aioretry_smithy, aioretry_smithy.testing, aioretry_smithy.smithy)


def pytest_configure(config):
    """Prepare for doctests, only where they are run: the move confuses mutmut."""
    if config.getoption("doctestmodules"):
        _move_methods_to_facade()


def _move_methods_to_facade():
    """Let doctest find the methods of classes that say they are of the facade."""
    for module in FACADES:
        for name in module.__all__:
            public = getattr(module, name)
            for attribute in vars(public).values() if inspect.isclass(public) else ():
                function = getattr(attribute, "__func__", attribute)
                if inspect.isfunction(function):
                    function.__module__ = public.__module__


def pytest_collection_modifyitems(items):
    """Let the examples in docstrings use public names without importing them."""
    names = {"aiohttp": aiohttp, "asyncio": asyncio, "logging": logging, "URL": URL}
    common, testing, smithy = (
        {name: getattr(module, name) for name in module.__all__} for module in FACADES
    )
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            # RetryStrategy is in two facades.
            inside = item.path.parent.name == "smithy"
            own, other = (smithy, common) if inside else (common, smithy)
            item.dtest.globs |= names | testing | other | own
