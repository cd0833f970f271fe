"""Reading files, pipes and standard input, and finding the call in a line."""

import gzip
import io
import json
import os
import sys
import threading
from types import SimpleNamespace

import pytest
from command_line import needs_posix
from made_lines import call

from aioretry_smithy._report import sources
from aioretry_smithy._report.sources import LineSource, Skipped, UnreadableError, decode


def read(source):
    return [*source.lines(lambda size: None)]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "calls.jsonl"
    path.write_bytes(b"a\n\n \nb\r\nc")
    return path


def test_lines_without_the_empty_ones(file):
    """The last one need not end; a file is read as often as wanted."""
    source = LineSource(str(file))

    assert [b"a", b"b\r", b"c"] == read(source) == read(source)
    assert 9 == source.size
    assert source.warning is None
    source.close()


def test_progress_is_told_in_bytes(file, monkeypatch):
    """Together they are the size."""
    monkeypatch.setattr(sources, "_CHUNK", 4)
    source, told = LineSource(str(file)), []
    [*source.lines(told.append)]

    assert 9 == sum(told)
    source.close()


def test_compressed_files(tmp_path):
    """They are known by how they begin, whatever they are called."""
    path = tmp_path / "calls.jsonl"
    path.write_bytes(gzip.compress(b"a\nb\n") + gzip.compress(b"c\n"))
    source = LineSource(str(path))

    assert [b"a", b"b", b"c"] == read(source) == read(source)
    assert source.warning is None
    source.close()


@pytest.mark.parametrize("harm", ["cut", "bytes", "trailer"])
def test_broken_compressed_files(tmp_path, harm):
    """They are read as far as it goes, and a warning says so."""
    data = gzip.compress(os.urandom(3000).hex().encode() + b"\nb\n" * 1000)
    broken = {
        "cut": data[:-20],
        "bytes": data[:2000] + b"\xff" * 400 + data[2400:],
        "trailer": data + b"more",
    }[harm]
    path = tmp_path / "calls.gz"
    path.write_bytes(broken)
    source = LineSource(str(path))
    lines = read(source)

    assert source.warning.startswith(f"{path}: read as far as it goes: ")
    assert lines or harm == "bytes"
    source.close()


@pytest.mark.parametrize("missing", [1, 8])
def test_the_last_line_of_a_compressed_file_that_is_cut(tmp_path, missing):
    """It is read as in a file that is not compressed, also without its newline."""
    path = tmp_path / "calls.gz"
    path.write_bytes(gzip.compress(b"a\nb")[:-missing])
    source = LineSource(str(path))

    assert [b"a", b"b"] == read(source) == read(source)
    assert source.warning.startswith(f"{path}: read as far as it goes: ")
    source.close()


def test_a_file_that_grows(file):
    """It is read as far as it went at first, each time."""
    source = LineSource(str(file))
    with file.open("ab") as more:
        more.write(b"d\ne\n")

    assert [b"a", b"b\r", b"c"] == read(source) == read(source)
    source.close()


def test_a_compressed_file_that_grows(file):
    """It ends where it ended at first, too: the second pass reads no more."""
    file.write_bytes(gzip.compress(b"a\nb\n"))
    source = LineSource(str(file))
    with file.open("ab") as more:
        more.write(gzip.compress(b"c\n"))

    assert [b"a", b"b"] == read(source) == read(source)
    assert source.warning is None
    source.close()


def test_a_file_that_shrinks(file):
    """What is gone is gone."""
    source = LineSource(str(file))
    os.truncate(file, 2)

    assert [b"a"] == read(source)
    source.close()


def test_giant_lines(file, monkeypatch):
    """They are passed over, and take no memory."""
    monkeypatch.setattr(sources, "_LONGEST_LINE", 8)
    file.write_bytes(b"a\n" + b"x" * 50 + b"\nb\n" + b"y" * 50)
    source = LineSource(str(file))

    assert [b"a", Skipped.TOO_LONG, b"b", Skipped.TOO_LONG] == read(source)
    source.close()


@needs_posix("pipes that have a name in a folder")
def test_pipes(tmp_path):
    """They are read once, and copied."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"a\nb\n",))
    writer.start()
    source = LineSource(str(path))
    writer.join()

    assert [b"a", b"b"] == read(source) == read(source)
    source.close()


def test_standard_input(monkeypatch):
    """It is copied, too, and may be compressed."""
    data = io.BytesIO(gzip.compress(b"a\n"))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=data))
    source = LineSource("-")

    assert [b"a"] == read(source) == read(source)
    source.close()


def test_no_standard_input(monkeypatch):
    """A program may have none."""
    monkeypatch.setattr(sys, "stdin", None)

    with pytest.raises(UnreadableError, match="^-: there is no standard input$"):
        LineSource("-")


@pytest.mark.parametrize("name", ["missing", ".", "nul\0"])
def test_files_that_cannot_be_opened(tmp_path, name):
    """The error names the file and the reason."""
    with pytest.raises(UnreadableError, match=r"^.*: .+"):
        LineSource(str(tmp_path / name))


def test_a_disk_that_fails(file, monkeypatch):
    """The error is that of reading, not of writing."""
    source = LineSource(str(file))
    source.close()
    failing = SimpleNamespace(seek=lambda *at: None, read=fail)
    monkeypatch.setattr(source, "_file", failing)

    with pytest.raises(UnreadableError, match="calls.jsonl: Input/output error$"):
        read(source)


def fail(size):
    raise OSError(5, "Input/output error")


CALL = call()
TEXT = json.dumps(CALL)


@pytest.mark.parametrize(
    "line",
    [
        TEXT,
        f"2026-11-26 12:00:00,000 DEBUG aioretry_smithy {TEXT}",
        f"\ufeff{TEXT}\r",
        f"[1] {TEXT} and more",
        f'{{"pid": 5}} {{not json}} {TEXT}',
        f"{{ {{}} [{{1}}] {TEXT} and more",
        "{1} " * 7 + TEXT,
        json.dumps({"log": TEXT + "\n", "stream": "stdout", "time": "2026"}),
        json.dumps({"stream": "stdout", "log": f"INFO {TEXT}"}),
        json.dumps({"level": "INFO", "message": CALL}),
        f"2026-11-26T12:00:00Z stdout F {TEXT}",
        f'{TEXT} {{"trace": 1}}',
        f"{TEXT}, {{broken",
    ],
)
def test_a_call_is_found(line):
    """After a prefix, after other braces, and in what a container puts around it."""
    assert CALL == decode(line.encode())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("GET /orders 200", "no_json"),
        ("{" * 50, "no_json"),
        ("{1} " * 8 + TEXT, "no_json"),
        (json.dumps({**CALL, "calls": [CALL]})[:-30], "no_json"),
        (json.dumps({"calls": [CALL], "name": "cut here"})[:-3], "no_json"),
        ('{"a": 1' + "0" * 5000 + "}", "no_json"),
        ('{"a": {"b": 1}}', "no_call"),
        ('{"type": "call"}', "no_call"),
        ('{"type": "phone", "name": "Ada"}', "no_call"),
        ('{"log": "{\\"a\\": 1}", "more": "text {", "n": 1}', "no_call"),
        (json.dumps({**CALL, "type": "attempt"}), "attempt"),
        (json.dumps({**CALL, "type": None, "attempt": 2}), "attempt"),
        (json.dumps({**CALL, "type": []}), "no_call"),
        (json.dumps({**CALL, "type": "request"}), "not_nested"),
        (json.dumps({"type": "response", "duration": 1}), "not_nested"),
        (json.dumps({"log": json.dumps({**CALL, "type": "response"})}), "not_nested"),
        (TEXT + TEXT, "several"),
        (json.dumps([CALL, CALL]), "several"),
        (f"{TEXT}\r{TEXT}\r", "several"),
    ],
)
def test_no_call_is_found(line, reason):
    """The reason says what the line is instead."""
    assert reason == decode(line.encode())


def test_deep_nesting():
    """What Python cannot read is skipped."""
    line = b'{"type": "call", "name": ' + b"[" * 200_000

    assert decode(line) in {Skipped.TOO_DEEP, Skipped.NO_JSON}


def test_deep_nesting_in_a_wrapper():
    """The same inside of a text."""
    inside = '{"a": ' + "[" * 200_000

    assert Skipped.NO_CALL is decode(json.dumps({"log": inside}).encode())


def test_values_of_to_dict():
    """They have no type; a dictionary of a log is a call all the same."""
    values = {key: value for key, value in CALL.items() if key not in {"type", "v"}}

    assert values == decode(json.dumps(values).encode())


def test_numbers_that_are_none():
    """NaN and infinities are missing."""
    line = '{"type": "call", "name": "GET", "duration": NaN, "delay": -Infinity}'

    assert {"type": "call", "name": "GET", "duration": None, "delay": None} == (
        decode(line.encode())
    )


def test_bytes_that_are_no_text():
    """They are replaced."""
    line = TEXT.encode().replace(b"shop", b"\xff")

    assert "https://\ufffd.example.com/orders/17" == decode(line)["request_url"]
