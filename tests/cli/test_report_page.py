"""``report --html``: the report as a page in a file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from made_answers import line

from aioretry_smithy.__main__ import main


@pytest.fixture
def calls(tmp_path):
    """A file with the lines of two calls."""
    file = tmp_path / "calls.jsonl"
    lines = line(id="k3j9x0qa-1"), line(id="k3j9x0qa-2")
    file.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    return file


@pytest.fixture
def page(tmp_path):
    """Where a page goes."""
    return tmp_path / "report.html"


def test_page_is_written_beside_the_text(calls, page, capsys):
    """The text is the same with and without a page."""
    main(["report", str(calls)])
    without = capsys.readouterr()

    assert 0 == main(["report", str(calls), f"--html={page}"])
    assert without == capsys.readouterr()
    assert "<h2>Report on 2 calls</h2>" in page.read_text(encoding="utf-8")


def test_page_and_document_go_together(calls, page, capsys):
    """``--json`` prints the same as ever."""
    assert 0 == main(["report", str(calls), "--json", f"--html={page}"])
    assert 2 == json.loads(capsys.readouterr().out)["summary"]["calls"]
    assert page.exists()


def test_a_report_on_nothing_leaves_the_old_page(tmp_path, page, capsys):
    """Where there is no call, what was in the file stays there."""
    page.write_text("old")
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")

    assert 65 == main(["report", str(empty), f"--html={page}"])
    assert "old" == page.read_text()


def test_a_file_that_cannot_be_written_is_told_before_anything_is_read(
    page, monkeypatch, capsys
):
    """Reading may take minutes; files that are missing are not even looked for."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)

    assert 73 == main(["report", "missing.jsonl", f"--html={page}"])
    assert "--html: " in capsys.readouterr().err
    assert not page.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_text_comes_where_the_page_fails(calls, page, capsys):
    """A full disk costs the page alone."""
    assert 73 == main(["report", str(calls), "--html=/dev/full"])
    said = capsys.readouterr()

    assert "2 calls" in said.out
    assert "--html: [Errno 28] No space left on device" in said.err
