"""A public module whose extra is missing says what to install."""

from __future__ import annotations

import importlib
import re
import sys

import pytest


@pytest.mark.parametrize(
    ("extra", "module", "package"),
    [
        ("limits", "limits", "limits"),
        ("opentelemetry", "opentelemetry", "opentelemetry"),
        ("prometheus", "prometheus", "prometheus_client"),
    ],
)
def test_missing_extra_is_named(monkeypatch, extra, module, package):
    """With the command that installs it, and the name of the module as ever."""
    importers = (f"aioretry_smithy.{module}", "aioretry_smithy._telemetry.spans")
    for name in [*sys.modules]:
        if name in importers or name.partition(".")[0] == package:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(f"aioretry_smithy.{module}")
    expected = f'{package} is missing: pip install "aioretry-smithy[{extra}]"'

    assert expected == str(caught.value)
    assert package == caught.value.name.partition(".")[0]


def test_missing_extra_is_named_where_srv_records_are_asked_for(monkeypatch):
    """Not before: other groups of endpoints do without."""
    for name in [*sys.modules]:
        if name.partition(".")[0] == "dns":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dns", None)
    srv = importlib.import_module("aioretry_smithy._endpoints.sources")
    expected = 'dns is missing: pip install "aioretry-smithy[dns]"'

    with pytest.raises(ModuleNotFoundError, match=re.escape(expected)):
        srv.SrvLookup("_http._tcp.orders.example.com")
