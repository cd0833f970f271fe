"""A public module whose extra is missing says what to install."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("extra", "package"),
    [
        ("limits", "limits"),
        ("opentelemetry", "opentelemetry"),
        ("prometheus", "prometheus_client"),
    ],
)
def test_missing_extra_is_named(monkeypatch, extra, package):
    """With the command that installs it, and the name of the module as ever."""
    importers = (f"aioretry_smithy.{extra}", "aioretry_smithy._telemetry.instruments")
    for name in [*sys.modules]:
        if name in importers or name.partition(".")[0] == package:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(f"aioretry_smithy.{extra}")
    expected = f'{package} is missing: pip install "aioretry-smithy[{extra}]"'

    assert expected == str(caught.value)
    assert package == caught.value.name.partition(".")[0]
