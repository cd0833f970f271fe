"""What is drawn of all that the benchmarks measure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from picture import panels_of, plot
from variants import STANDARD

STORED = Path(__file__).with_name("figures_0_2_0.json")
"""What version 0.2.0 took."""


def stored():
    return json.loads(STORED.read_text(encoding="utf-8"))


def test_panel_can_be_read():
    """It has eight bars at most, and none for what the others are compared with."""
    panels = panels_of(stored())

    assert 4 == len(panels)
    assert all(STANDARD in panel.bars for panel in panels)
    assert all(len(panel.bars) <= 8 for panel in panels)
    assert all("bare aiohttp" not in panel.bars for panel in panels)


def test_stored_figures_can_be_drawn(tmp_path):
    """A picture needs no new measurement."""
    pytest.importorskip("matplotlib", reason="draws the picture")
    plot(tmp_path / "costs.svg", stored())

    assert "measured on 2026-" in (tmp_path / "costs.svg").read_text(encoding="utf-8")
