"""The command ``report``: files in, text or a document out, and exit codes."""

import gzip
import io
import json
import os
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_line import needs_posix
from made_lines import call, failed, function, sent

from aioretry_smithy.__main__ import main
from aioretry_smithy._cli.arguments import parse
from aioretry_smithy._cli.options import moment
from aioretry_smithy._cli.output import new_output
from aioretry_smithy._cli.plain_output import PlainOutput

AGAIN = {"delay": 1.0, "delay_source": "retry_after"}
SLOW = call(sent(0, 0.1, 429, **AGAIN), sent(1.1), took=1.2)


def written(path, *lines):
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return str(path)


@pytest.fixture
def calls(tmp_path):
    """A file with the lines of three calls."""
    lost = call(status=503, stop_reason="no_retry")
    return written(tmp_path / "calls.jsonl", call(), SLOW, lost)


def document(capsys, *arguments):
    assert 0 == main(["report", "--json", *arguments])
    return json.loads(capsys.readouterr().out)


def test_report_as_text(calls, capsys):
    """It says how the calls went and why the slow ones were slow."""
    assert 0 == main(["report", calls])
    shown = capsys.readouterr()

    assert "Report on 3 calls: 2026-11-26T12:00:00Z" in shown.out
    assert "the slowest 5 % (1 call, from 1.20 s on)" in shown.out
    assert "├─ 1  429" in shown.out
    assert "" == shown.err


def test_a_pipe_has_no_edge(tmp_path, monkeypatch, capsys):
    """What somebody looks for in a file is not broken in two."""
    monkeypatch.delenv("COLUMNS", raising=False)
    host = f"{'a-host-with-a-long-name.' * 2}example.com"
    gone = call(request_url=f"https://{host}/x", **failed("ServerDisconnectedError"))

    assert 0 == main(["report", written(tmp_path / "calls.jsonl", gone)])
    lines = capsys.readouterr().out.splitlines()
    assert [host, "ServerDisconnectedError"] in [line.split()[:2] for line in lines]


def test_report_as_a_document(calls, capsys):
    """It is one JSON document, the same numbers again."""
    values = document(capsys, calls)

    assert [calls] == values["input"]["sources"]
    assert (3, 2) == (values["summary"]["calls"], values["summary"]["successes"])


def test_several_files_in_one_report(calls, tmp_path, capsys):
    """Compressed ones, too."""
    more = tmp_path / "more.jsonl.gz"
    more.write_bytes(gzip.compress(f"{json.dumps(call())}\n".encode()))
    values = document(capsys, calls, str(more))

    assert 4 == values["input"]["calls"]
    assert 2 == len(values["input"]["sources"])


def test_standard_input(calls, monkeypatch, capsys):
    """It is called ``-``."""
    data = io.BytesIO(Path(calls).read_bytes())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=data))

    assert 3 == document(capsys, "-")["input"]["calls"]


def test_options_choose_calls(calls, capsys):
    """By time, by pattern, and how many are shown."""
    values = document(
        capsys, calls, "--by=method", "--match=success=yes", "--match=path=/orders/*",
        "--since=2026-11-26T12:00:00Z", "--until=2026-11-26T13:00:00+01:00", "--top=1",
    )  # fmt: skip

    assert (2, 1) == (values["input"]["calls"], values["input"]["left_out"])
    assert ["GET"] == [group["key"] for group in values["groups"]]
    assert 1 == len(values["examples"]["slowest"])


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([], "there is no line"),
        (["GET /"], "none of 1 lines is a call (expected: those of"),
        ([{**call(), "type": "request"}], "LogFormatter.json(nested=True)"),
        ([{**call(), "type": "attempt"}], "put the LoggingClient outside the retrying"),
        ([[call(), call()]], "several calls stand on one line"),
    ],
)
def test_without_any_call(tmp_path, lines, complaint, capsys):
    """One line says why there is nothing to report on, and the exit code is 65."""
    assert 65 == main(["report", written(tmp_path / "calls.jsonl", *lines)])
    shown = capsys.readouterr()

    assert ("", 1) == (shown.out, shown.err.count("\n"))
    assert shown.err.startswith("aioretry-smithy: error: ")
    assert complaint in shown.err


def test_broken_file_without_any_call(tmp_path, capsys):
    """A warning says that it is broken, before the line that says why it is over."""
    path = tmp_path / "calls.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(call()).encode())[:12])
    assert 65 == main(["report", str(path)])
    shown = capsys.readouterr()
    warning, complaint = shown.err.splitlines()

    assert "" == shown.out
    assert warning.startswith(f"warning: {path}: read as far as it goes: ")
    assert "aioretry-smithy: error: there is no line" == complaint


@needs_posix("any names of files")
def test_warnings_are_lines_whatever_files_are_called(tmp_path, capsys):
    """Nothing in a name moves the cursor."""
    path = tmp_path / "a\x1b[2J\nb.gz"
    path.write_bytes(gzip.compress(json.dumps(call()).encode() + b"\n")[:-1])
    assert 0 == main(["report", str(path)])

    assert r"a\x1b[2J\nb.gz: read as far as it goes: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--match=host=nobody"], "matches"),
        # The time zone of who asks is seldom that of the report.
        (["--since=2026-11-27T01:00+01:00"], "began from 2026-11-27T00:00:00Z"),
        (
            ["--since=2026-11-26T13:00Z", "--until=2026-11-26T14:00Z", "--match=id=*"],
            "began from 2026-11-26T13:00:00Z to 2026-11-26T14:00:00Z and matches",
        ),
    ],
)
def test_without_any_call_that_is_wanted(calls, options, wanted, capsys):
    """The same where the options leave nothing; times are in UTC, as in a report."""
    assert 65 == main(["report", calls, *options])
    assert f"none of 3 calls {wanted}\n" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_a_file_that_cannot_be_read(tmp_path, calls, name, capsys):
    """Nothing is printed or written, and the exit code is 66."""
    har = tmp_path / "calls.har"
    assert 66 == main(["report", calls, str(tmp_path / name), f"--har={har}"])
    shown = capsys.readouterr()

    assert ("", 1) == (shown.out, shown.err.count("\n"))
    assert tmp_path.name in shown.err
    assert not har.exists()


@pytest.mark.parametrize("name", ["a\0b", "a\ud800"], ids=ascii)
def test_a_name_that_no_file_can_have(name, capsys):
    """It is not read, and the exit code is 66."""
    assert 66 == main(["report", name])
    shown = capsys.readouterr()

    assert "" == shown.out
    assert shown.err.startswith(f"aioretry-smithy: error: {name[0]}\\")
    assert 1 == shown.err.count("\n")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-", "-"],
        ["--by=colour", "a"],
        ["--since=noon", "a"],
        ["--since=99999999d", "a"],
        ["--until=10", "a"],
        ["--match=path", "a"],
        ["--match=colour=red", "a"],
        ["--top=-1", "a"],
        ["--top=10000", "a"],
        ["--top=ten", "a"],
        ["--html=-", "a"],
        ["--har=/no/such/folder/x", "a"],
        ["--har=a\0b", "a"],
        ["--unknown", "a"],
    ],
)
def test_bad_usage(arguments, capsys):
    """One line says what is wrong, and the exit code is 64."""
    assert 64 == main(["report", *arguments])
    shown = capsys.readouterr()

    assert ("", 1) == (shown.out, shown.err.count("\n"))


@needs_posix("links that everybody may make")
@pytest.mark.parametrize(
    "options",
    [["--har={0}"], ["--har={1}", "--html={1}"], ["--har={2}"], ["--html={3}"]],
    ids=["input", "twice", "link", "hard link"],
)
def test_files_that_are_one(calls, tmp_path, options, capsys):
    """What is read is not written over, and nothing is written twice."""
    (tmp_path / "link").symlink_to(calls)
    (tmp_path / "hard").hardlink_to(calls)
    places = calls, tmp_path / "calls.har", tmp_path / "link", tmp_path / "hard"
    before = Path(calls).read_bytes()

    assert 64 == main(["report", calls, *(each.format(*places) for each in options)])
    assert "a file of its own" in capsys.readouterr().err
    assert before == Path(calls).read_bytes()


def test_names_of_a_file_that_is_not_there_yet(calls, tmp_path, monkeypatch, capsys):
    """One would be written over the other."""
    monkeypatch.chdir(tmp_path)

    assert 64 == main(["report", calls, "--html=new", f"--har={tmp_path / 'new'}"])
    assert "a file of its own" in capsys.readouterr().err
    assert not Path("new").exists()


def test_devices_are_used_as_often_as_one_likes(calls, capsys):
    """Nothing is lost there."""
    assert 0 == main(["report", calls, f"--har={os.devnull}", f"--html={os.devnull}"])
    assert "3 calls" in capsys.readouterr().out


def test_standard_input_is_not_written_over(calls, monkeypatch, capsys):
    """A file that the shell reads is a file that is read."""
    before = Path(calls).read_bytes()
    with Path(calls).open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert 64 == main(["report", "-", f"--har={calls}"])

    assert "a file of its own" in capsys.readouterr().err
    assert before == Path(calls).read_bytes()


@needs_posix("links that everybody may make")
def test_a_file_is_not_read_twice(calls, tmp_path, capsys):
    """Each call would count twice."""
    (tmp_path / "link").symlink_to(calls)

    assert 64 == main(["report", calls, str(tmp_path / "link")])
    assert "(expected: once)" in capsys.readouterr().err


def test_relative_moments():
    """So long ago: seconds, minutes, hours, days."""
    now = time.time()
    units = {"90s": 90, "10m": 600, "1.5h": 5400, "2d": 172_800}

    for text, seconds in units.items():
        assert now - seconds == pytest.approx(moment(text), abs=5)


def test_moments_in_local_time():
    """Without a zone they are, with one they are not."""
    local = datetime(2026, 11, 23, 12).astimezone()

    assert local.timestamp() == moment("2026-11-23T12:00")
    utc = f"{local.astimezone(None) - local.utcoffset():%Y-%m-%dT%H:%M}Z"
    assert local.timestamp() == moment(utc)
    assert local.timestamp() - timedelta(hours=12).total_seconds() == (
        moment("2026-11-23")
    )


def test_defaults():
    """All calls, by path, as text alone."""
    arguments = parse(["report", "calls.jsonl"])

    assert (["calls.jsonl"], "path", 10, []) == (
        arguments.files,
        arguments.by,
        arguments.top,
        arguments.matches,
    )
    assert [None] * 4 == [
        getattr(arguments, name) for name in ("since", "until", "html", "har")
    ]


def test_files_for_other_tools(calls, tmp_path, capsys):
    """An archive of the calls that are reported on."""
    har = tmp_path / "calls.har"
    code = main(["report", calls, f"--har={har}", "--match=success=yes"])
    archive = json.loads(har.read_text())["log"]

    assert 0 == code
    assert (2, 3) == (len(archive["pages"]), len(archive["entries"]))
    assert "" == capsys.readouterr().err


def test_files_hide_credentials(tmp_path, capsys):
    """A line that nobody has masked is masked in them."""
    line = call(
        request_url="http://u:S3CR3T@h/?token=S3CR3T",
        request_headers={"Authorization": "S3CR3T"},
    )
    har = tmp_path / "calls.har"
    calls = written(tmp_path / "calls.jsonl", line)

    assert 0 == main(["report", calls, f"--har={har}"])
    assert "S3CR3T" not in har.read_text() + capsys.readouterr().out


def test_calls_that_have_no_place_in_a_file(tmp_path, capsys):
    """How many there are is said."""
    har = tmp_path / "calls.har"
    lines = call(), call(request_started_at=None)

    calls = written(tmp_path / "calls.jsonl", *lines)
    assert 0 == main(["report", calls, f"--har={har}"])
    assert "--har: left out 1 calls without a time\n" == capsys.readouterr().err


def test_progress_on_a_terminal(calls, monkeypatch, capsys):
    """Standard error shows how far it is; nothing of it is in the report."""
    pytest.importorskip("rich", reason="needs the extra cli")
    shown = []

    class Terminal(io.StringIO):
        def isatty(self):
            return True

        def write(self, text):
            shown.append(text)
            return len(text)

    monkeypatch.setattr(sys, "stderr", Terminal())
    assert 0 == main(["report", calls])
    assert any("reading" in text for text in shown)
    assert "reading" not in capsys.readouterr().out


def test_hostile_lines_do_no_harm(tmp_path, capsys):
    """Neither markup of rich nor control characters reach the terminal."""
    evil = "[bold]\x1b[2J\u202e[/nope]"
    line = function(
        call(sent(0, 0.1, **failed(evil)), endpoint=evil, **failed(evil)),
        name=evil,
        **failed(evil),
        stop_reason=evil,
    )
    calls = written(tmp_path / "calls.jsonl", line, {**line, "calls": []})

    assert 0 == main(["report", calls, "--by=endpoint"])
    shown = capsys.readouterr().out
    assert "[bold]\\x1b[2J\\u202e[/nope]" in shown
    assert "\x1b[2J" not in shown


LONE = "\udcff"
"""What Python makes of a byte that is no text; no file can have it."""


def texts_in(values):
    if isinstance(values, dict):
        return [*values, *(text for each in values.values() for text in texts_in(each))]
    if isinstance(values, list):
        return [text for each in values for text in texts_in(each)]
    return [values] if isinstance(values, str) else []


@pytest.mark.parametrize("by", ["path", "host", "method", "endpoint", "name"])
def test_lone_surrogates_are_escaped_in_all_views(by, tmp_path, capsys):
    """No reader of a document, a page or an archive stumbles over one."""
    texts = "name", "request_method", "endpoint", "response_reason", "stop_reason"
    bad = dict.fromkeys(texts, f"a{LONE}")
    bad |= {"request_url": f"http://h{LONE}/{LONE}", "delay_source": LONE, "delay": 1.0}
    refused = {**bad, "response_headers": {f"X{LONE}": LONE}}
    lost = {**failed(f"E{LONE}"), **bad}
    line = call(sent(0, 0.1, 429, **refused), sent(1.1, **lost), took=1.2, **lost)
    calls = written(tmp_path / "calls.jsonl", *[line] * 5)
    har = tmp_path / "har"
    options = [f"--har={har}", f"--html={tmp_path / 'html'}"]

    assert 0 == main(["report", calls, f"--by={by}", *options])
    capsys.readouterr().out.encode()
    shown = document(capsys, calls, f"--by={by}")
    assert "h\\udcff" == shown["hints"][0]["where"]
    for values in (shown, json.loads(har.read_text())):
        for text in texts_in(values):
            text.encode()
    assert "\\udcff" in shown["groups"][0]["key"]


@needs_posix("names of files that are no text")
def test_names_of_files_that_are_no_text(tmp_path, capsys):
    """They are escaped, in warnings too."""
    file = Path(os.fsdecode(os.fsencode(tmp_path / "calls-") + b"\xff.jsonl.gz"))
    data = gzip.compress(f"{json.dumps(call())}\n".encode() * 1000)
    file.write_bytes(data[:-20])
    read = document(capsys, str(file))["input"]

    for text in (*read["sources"], *read["warnings"]):
        assert "calls-\\udcff.jsonl.gz" in text


def test_rich_and_plain_say_the_same(calls, monkeypatch, capsys):
    """Words are broken elsewhere, and that is all."""
    monkeypatch.setenv("COLUMNS", "300")
    assert 0 == main(["report", calls])
    coloured = capsys.readouterr().out
    for module in ("report", "output"):
        name = f"aioretry_smithy._cli.{module}"
        monkeypatch.setattr(sys.modules[name], "new_output", PlainOutput)
    assert 0 == main(["report", calls])

    words = coloured.replace("─", " ").split()
    assert words == capsys.readouterr().out.replace("─", " ").split()
    assert new_output is not None


@pytest.mark.parametrize("option", [[], ["--json"]], ids=["text", "document"])
def test_page_is_written_beside_the_text(calls, tmp_path, option, capsys):
    """What is printed is the same with and without a page."""
    page = tmp_path / "report.html"
    main(["report", calls, *option])
    without = capsys.readouterr()

    assert 0 == main(["report", calls, *option, f"--html={page}"])
    assert without == capsys.readouterr()
    assert "<h2>Report on 3 calls</h2>" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["--html", "--har"])
class TestFilesToWrite:
    """The page and the archive."""

    def test_stay_as_they_are_without_calls(self, tmp_path, option, capsys):
        """Nothing is begun before there is something to write."""
        file = tmp_path / "file"
        file.write_text("old")

        assert 65 == main(["report", written(tmp_path / "empty"), f"{option}={file}"])
        assert "old" == file.read_text()

    def test_that_cannot_be_written_are_told_before_any_is_read(
        self, tmp_path, option, monkeypatch, capsys
    ):
        """Reading may take minutes; files that are missing are not looked for."""
        monkeypatch.setattr(os, "access", lambda *about: False)

        assert 73 == main(["report", "missing.jsonl", f"{option}={tmp_path / 'file'}"])
        shown = capsys.readouterr()
        assert "" == shown.out
        assert shown.err.startswith(f"aioretry-smithy: error: {option}: ")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_full_disk_costs_the_file_alone(self, calls, option, capsys):
        """The exit code is 73, the error names the option."""
        assert 73 == main(["report", calls, f"{option}=/dev/full"])
        shown = capsys.readouterr()
        assert "3 calls" in shown.out
        assert f"error: {option}: [Errno 28] No space left on device" in shown.err
