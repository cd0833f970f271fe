"""A report shows itself as a page."""

from __future__ import annotations

import sys

import pytest
from made_answers import made_answers

from aioretry_smithy._report.report import Report


def test_notebook_gets_the_page_in_a_frame():
    """What a notebook shows is the page, and nothing of it leaks into the notebook."""
    pytest.importorskip("jinja2", reason="needs the extra cli")
    report = Report(made_answers())

    assert "<h1>Report on 20,000 calls</h1>" in report.to_html()
    assert report._repr_html_().startswith("<iframe")


def test_notebook_shows_the_text_without_the_template_engine(monkeypatch):
    """Without the extra there is no page, and no error either."""
    monkeypatch.delitem(sys.modules, "aioretry_smithy._report.page", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    report = Report(made_answers())

    assert report._repr_html_() is None
    with pytest.raises(ModuleNotFoundError, match="aioretry-smithy.cli"):
        report.to_html()
