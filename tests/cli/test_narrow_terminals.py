"""Tables of a report on terminals with few columns."""

from __future__ import annotations

import json
import re
import sys

import pytest
from made_lines import call, sent

from aioretry_smithy.__main__ import main
from aioretry_smithy._cli.plain_output import PlainOutput


def wide_lines():
    """Return calls whose numbers are long, and whose texts are longer."""
    again = {"delay": 1234.5, "delay_source": "backoff"}
    place = {"request_url": f"https://{'shop.' * 9}example.com/orders/17"}
    lost = call(
        sent(0, 98.7, 503, **place, **again), sent(1333.2, 98.7, 503, **place),
        took=1432.1, status=503, stop_reason="max_total_attempts", sampling_rate=1e-4,
        **place,
    )  # fmt: skip
    return [lost, call(sampling_rate=1e-5)] * 5


@pytest.mark.slow
@pytest.mark.parametrize("output", ["rich", "plain"])
@pytest.mark.parametrize("width", [20, 40, 50, 60, 80, 200])
def test_no_number_is_cut_on_any_terminal(width, output, tmp_path, monkeypatch, capsys):
    """All are there as on a wide one, and none is broken in two or left out."""
    if output == "plain":
        for module in ("report", "output"):
            name = f"aioretry_smithy._cli.{module}"
            monkeypatch.setattr(sys.modules[name], "new_output", PlainOutput)
    calls = tmp_path / "calls.jsonl"
    calls.write_text("".join(f"{json.dumps(line)}\n" for line in wide_lines()))
    arguments = ["report", str(calls), "--top=0"]
    monkeypatch.setenv("COLUMNS", "1000")
    assert 0 == main(arguments)
    expected = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", f"{width}")
    assert 0 == main(arguments)
    shown = capsys.readouterr().out

    assert "550,000" in expected
    assert numbers_in(expected) == numbers_in(shown)
    assert "…" not in shown
    for line in tables_in(shown):
        assert len(line) <= max(width, 30) or not any(map(str.isdigit, line))


@pytest.mark.parametrize("width", [40, 50, 60])
def test_terminals_break_pictures_and_no_number(width, tmp_path, monkeypatch, capsys):
    """What is at most in a minute stands before the line that is drawn of it."""
    monkeypatch.setenv("COLUMNS", f"{width}")
    calls = tmp_path / "calls.jsonl"
    lines = [call(at=60 * n, sampling_rate=1e-6) for n in range(60)]
    calls.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert 0 == main(["report", str(calls), "--top=0"])
    (shown,) = re.findall(r"calls +at most .*", capsys.readouterr().out)

    number = "1,000,000"
    assert shown.index(number) + len(number) <= width
    assert 60 == shown.count("▁") + shown.count("█")


def numbers_in(text):
    """Return the numbers in it, each as often as it is there, with their units."""
    found = re.findall(r"(?<![\w.,])[\d.,]*\d(?: ?(?:%|ms|s|h)(?!\w))?", text)
    # The name of a column, which may stand beside each of its figures.
    return sorted(each.replace(" ", "") for each in found if each not in ("5", "5 %"))


def tables_in(text):
    """Yield the lines of tables whose width has a limit."""
    for block in re.split(r"\n(?=By |Where |Calls without|What |When)", text):
        head, *lines = block.splitlines()
        if head.startswith(("By ", "Where ", "What ")):
            yield from (line for line in lines if " spent " not in line)
