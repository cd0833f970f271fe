"""Output of the command line for people, with ``rich`` and without."""

import contextlib
import errno
import importlib.util
import io
import json
import os
import re
import runpy
import sys
from pathlib import Path

import pytest
from chains import retrying
from made_lines import call, sent

from aioretry_smithy import Backoff, RequestLog, RetryStrategy
from aioretry_smithy import SessionBuilder as Builder
from aioretry_smithy.__main__ import main
from aioretry_smithy._cli.output import (
    ExitCode,
    cannot_write,
    complain,
    end_line,
    flush,
    new_output,
    write,
)
from aioretry_smithy._cli.plain_output import PlainOutput
from aioretry_smithy._report.document import Heading, Table
from aioretry_smithy.testing import ScriptedTransport

HAS_RICH = importlib.util.find_spec("rich") is not None
TABLE = Table([("call", "attempts"), ("a", "10"), ("bcdefg", "2")], ("call",))
needs_dev_full = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="needs /dev/full"
)
needs_rich = pytest.mark.skipif(not HAS_RICH, reason="needs the extra cli")


@pytest.fixture
async def log():
    """The log of a call that was answered on its second attempt."""
    strategy = RetryStrategy.failsafe(Backoff.fixed(0.25))
    builder = (
        Builder("http://h")
        .decorator(ScriptedTransport([503, 200]))
        .decorator(retrying(strategy))
    )
    async with builder.build() as session, session.get("/a[b]") as response:
        return RequestLog.of(response)


@contextlib.contextmanager
def closed_pipe():
    """Make standard output a pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(writer, "w")))
    with stdout, contextlib.redirect_stdout(stdout):
        yield stdout


def outputs():
    return [PlainOutput, new_output] if HAS_RICH else [PlainOutput]


@pytest.mark.parametrize("make", outputs())
async def test_output_without_a_terminal_is_plain(make, log):
    """Where there is no terminal the tree stands there as the log renders it."""
    file = io.StringIO()
    make(file).document([Heading("title", "text [bold]"), log, "end"])

    expected = f"\ntitle: text [bold]\n{log.render()}\nend\n"
    assert expected == file.getvalue()


def test_plain_table_is_aligned():
    """Columns stand below their names, without blanks at the end."""
    file = io.StringIO()
    PlainOutput(file).document([TABLE])

    assert "call    attempts\na             10\nbcdefg         2\n" == file.getvalue()


@pytest.mark.parametrize("make", outputs())
@pytest.mark.parametrize("width", [12, 20, 40])
def test_tables_of_all_commands_fit(make, width, monkeypatch):
    """No figure is cut where a terminal is narrow: a row takes several lines."""
    monkeypatch.setenv("COLUMNS", f"{width}")
    file = io.StringIO()
    head = "chain", "load", "recovery", "attempts"
    rows = [head, ("yours", "1,234.56", "never", "12.34")]
    make(file).document([Table(rows, ("chain",))])
    lines = file.getvalue().splitlines()

    assert {"1,234.56", "never", "12.34"} <= {
        *file.getvalue().replace(",\n", "\n").split()
    }
    if width < 40:
        assert lines[0] == "yours"
        assert lines[1].startswith("  load 1,234.56")


@pytest.mark.parametrize("make", outputs())
@pytest.mark.parametrize("columns", ["0", "-1", "wide", ""])
def test_columns_that_are_no_number_of_columns(make, columns, monkeypatch):
    """All is written, as where nothing is said of them."""
    monkeypatch.setenv("COLUMNS", columns)
    file = io.StringIO()
    make(file).document([Heading("title", "text"), TABLE])

    assert {"title:", "text", "call", "attempts", "a", "10", "bcdefg", "2"} <= {
        *file.getvalue().split()
    }


@needs_rich
def test_rich_table_aligns_numbers_to_the_right():
    """Figures stand below each other by their last digit."""
    file = io.StringIO()
    new_output(file).document([TABLE])
    head, _, *rows = (line.rstrip() for line in file.getvalue().splitlines())

    assert [["call", "attempts"], ["a", "10"], ["bcdefg", "2"]] == [
        line.split() for line in (head, *rows)
    ]
    assert [len(head)] * 2 == [len(row) for row in rows]


@needs_rich
def test_rich_table_is_no_wider_than_a_plain_one(monkeypatch):
    """A name that has room stays whole."""
    monkeypatch.setenv("COLUMNS", "24")
    file = io.StringIO()
    rows = [("host", "calls"), ("127.0.0.1:40889.h", "10")]
    new_output(file).document([Table(rows, ("host",))])

    assert "127.0.0.1:40889.h     10" == file.getvalue().splitlines()[-1]


@needs_rich
async def test_rich_output_colours_outcomes_on_a_terminal(log, monkeypatch):
    """A terminal sees failures in red, answers in green and waits dimmed."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("COLORTERM", raising=False)
    file = io.StringIO()
    new_output(file).document([log])
    text = file.getvalue()

    assert 1 == text.count("\x1b[31m503 Service Unavailable ")
    assert 2 == text.count("\x1b[32m200 OK")
    assert 1 == text.count("\x1b[2mthen waited 0.250 s (backoff)\x1b[0m")


@pytest.mark.parametrize(
    ("make", "branch"),
    [(PlainOutput, b"??"), (new_output, b"`-" if HAS_RICH else b"??")],
)
async def test_output_suits_every_encoding(make, branch, log):
    """Lines that an encoding does not have are replaced; nothing breaks."""
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    output = make(file)
    output.document([log, TABLE])
    file.flush()

    assert branch + b" 2  200 OK" in file.buffer.getvalue()


def test_output_is_plain_without_rich(monkeypatch):
    """Where ``rich`` is missing, everything is there but the colours."""
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.delitem(sys.modules, "aioretry_smithy._cli.output")
    monkeypatch.delitem(sys.modules, "aioretry_smithy._cli.rich_output", raising=False)
    names = runpy.run_module("aioretry_smithy._cli.output")

    assert names["new_output"] is PlainOutput


def test_complaint_is_one_line(capsys):
    """No text in a message can pass for another line."""
    complain("a\nb\x1b[31m")

    expected = "aioretry-smithy: error: a\\nb\\x1b[31m\n"
    assert expected == capsys.readouterr().err


def test_reader_who_left_is_no_error():
    """A pipe that is closed early ends the output, also what is still buffered."""
    with closed_pipe() as stdout:
        stdout.write("nobody will see this")
        with pytest.raises(BrokenPipeError) as caught:
            flush()
        code = cannot_write(caught.value)
        stdout.write("and this goes nowhere")
        flush()

    assert ExitCode.OK == code


@pytest.mark.parametrize(
    ("system", "code", "said"),
    [
        ("nt", ExitCode.OK, ""),
        ("posix", ExitCode.CANNOT_WRITE, "aioretry-smithy: error: [Errno 22] odd\n"),
    ],
)
def test_reader_who_left_on_windows(system, code, said, monkeypatch, capsys):
    """Its C library calls a pipe that nobody reads an invalid argument."""
    monkeypatch.setattr(os, "name", system)

    assert code == cannot_write(OSError(errno.EINVAL, "odd"))
    assert said == capsys.readouterr().err


def test_write_tells_that_the_reader_left():
    """The body is no longer read from the network once nobody wants it."""
    with closed_pipe():
        assert ExitCode.OK == write(b"x")
        assert None is write(b"this goes nowhere")


class Stdout(io.TextIOWrapper):
    def __init__(self, *, is_terminal):
        super().__init__(io.BytesIO())
        self.isatty = lambda: is_terminal


@pytest.mark.parametrize(
    ("body", "is_terminal", "expected"),
    [
        (b"fine", True, b"fine\n"),
        (b"fine\n", True, b"fine\n"),
        (b"", True, b""),
        (b"fine", False, b"fine"),
        (b"fine\n", False, b"fine\n"),
    ],
)
def test_line_is_ended_on_a_terminal(body, is_terminal, expected, monkeypatch):
    """The text after a body begins a line; a pipe or a file gets the body alone."""
    stdout = Stdout(is_terminal=is_terminal)
    monkeypatch.setattr(sys, "stdout", stdout)
    write(body)
    end_line(body)

    assert expected == stdout.buffer.getvalue()


@needs_dev_full
def test_full_disk_is_an_error_once(monkeypatch, capsys):
    """A failed write is reported, and not again when Python exits."""
    with Path("/dev/full").open("w", encoding="utf-8") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert ExitCode.CANNOT_WRITE == write(b"x")

    assert os.strerror(errno.ENOSPC) in capsys.readouterr().err


def test_streams_that_the_shell_closed_swallow_all(monkeypatch):
    """With ``>&- 2>&-`` Python has no streams at all, and nothing minds."""
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    write(b"x")
    end_line(b"x")
    complain("x")
    new_output(sys.stdout).document([TABLE])
    flush()

    assert ExitCode.OK == cannot_write(BrokenPipeError())


@needs_dev_full
def test_complaint_that_cannot_be_written_is_dropped(monkeypatch):
    """The exit code, which says what went wrong, is all that is left."""
    with Path("/dev/full").open("w", encoding="utf-8", buffering=1) as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        complain("x")
        stderr.flush()


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
    """The most of a minute stands before the picture, which has room in 80 columns."""
    monkeypatch.setenv("COLUMNS", f"{width}")
    calls = tmp_path / "calls.jsonl"
    lines = [call(at=60 * n, sampling_rate=1e-5) for n in range(60)]
    calls.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert 0 == main(["report", str(calls), "--top=0"])
    (shown,) = re.findall(r"calls +≤ .*", capsys.readouterr().out)

    number = "100,000"
    assert shown.index(number) + len(number) <= width
    assert 60 == shown.count("▁") + shown.count("█")
    assert len(shown) <= 80


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
