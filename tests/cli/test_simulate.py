"""``simulate``: a chain in an outage, as a table, a document and a picture."""

from __future__ import annotations

import io
import json
import re
import sys

import pytest

from aioretry_smithy.__main__ import main
from aioretry_smithy._cli.options import UsageError
from aioretry_smithy._cli.simulate import find_function

TINY = ["--clients=2", "--rate=10", "--capacity=15", "--outage=2:1:0.2", "--duration=5"]

CHAINS = """
from aioretry_smithy import SessionBuilder, client_decorator

def ours():
    return SessionBuilder.standard(max_total_attempts=2)

def nothing():
    pass

def broken():
    raise FileNotFoundError("orders.toml")

@client_decorator
async def mistaken(delegate, ctx, request):
    raise KeyError("token")

def bad_setting():
    raise ValueError("an empty name")

def quitter():
    raise SystemExit(3)

def wrong():
    return SessionBuilder().decorator(mistaken)

def stopped():
    raise KeyboardInterrupt
"""


@pytest.fixture
def chains(tmp_path, monkeypatch):
    """A file with functions that make chains, good and bad."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    file = tmp_path / "chains.py"
    file.write_text(CHAINS)
    return file


def names_in(out):
    """Return what the rows of a table begin with."""
    return [line[:14].rstrip() for line in out.splitlines() if "█" in line]


def test_standard_chain_is_put_through_an_outage(capsys):
    """Beside plain retries and none; the table says what was simulated."""
    code = main(["simulate", *TINY])
    out, err = capsys.readouterr()

    assert (0, "") == (code, err)
    assert ["standard chain", "plain retries", "no retries"] == names_in(out)
    assert out.startswith("2 clients make 10 calls a second for 5 s. The server can")
    assert "load: requests in the outage, for each call that began in it" in out


def test_chain_of_the_user_takes_its_place(chains, capsys):
    """It is named by its file and its function."""
    code = main(["simulate", f"{chains}:ours", *TINY])

    assert 0 == code
    assert ["your chain", "plain retries", "no retries"] == names_in(
        capsys.readouterr().out
    )


def test_document_has_the_counts(capsys):
    """For machines; with the seed it is the same each time."""
    documents = []
    for _ in range(2):
        assert 0 == main(["simulate", *TINY, "--seed=7", "--json", "--outage=none"])
        documents.append(json.loads(capsys.readouterr().out))
    first, again = documents

    assert first == again
    assert (7, None) == (first["settings"]["seed"], first["settings"]["outage"])
    assert 5 == len(first["runs"]["no retries"]["answered"])


def test_picture_is_drawn(tmp_path, capsys):
    """Its name is told, with what a terminal would take as a command escaped."""
    file = tmp_path / "storm\x1b.svg"
    code = main(["simulate", *TINY, "--plot", str(file)])

    assert 0 == code
    assert file.read_text(encoding="utf-8").startswith("<svg ")
    assert f"plot: {tmp_path}/storm\\x1b.svg\n" in capsys.readouterr().out


def test_picture_that_cannot_be_written_is_no_reason_to_say_nothing(tmp_path, capsys):
    """The table is printed, and the exit code tells."""
    file = tmp_path / f"{'x' * 300}.svg"
    code = main(["simulate", *TINY, "--plot", str(file)])
    out, err = capsys.readouterr()

    assert 73 == code
    assert "standard chain" in out
    assert "plot: " not in out
    assert err.startswith("aioretry-smithy: error: --plot: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--clients=0"], "clients: 0 (expected: an integer >= 1 and <= 1000000)"),
        (["--clients=1000001"], "clients: 1000001 (expected: an integer >= 1 and <= "),
        ([f"--clients={10**30}"], f"clients: {10**30} (expected: an integer >= 1 and"),
        (["--clients=many"], "argument --clients: invalid int value: 'many'"),
        (["--rate=nan"], "rate: nan (expected: finite and > 0)"),
        (["--capacity=-1"], "capacity: -1.0 (expected: finite and > 0)"),
        (["--outage=10:20"], "outage: '10:20' (expected: (start, length, capacity) or"),
        (["--duration=20"], "outage: (10.0, 20.0, 0.2) (expected: "),
        (["--restart=10"], "restart: '10' (expected: (start, length) or 'start:len"),
        (["--restart=10:soon"], "restart: '10:soon' (expected: (start, length) or "),
        (["--restart=119:3"], "restart: (119.0, 3.0) (expected: "),
        (["--restart=-1:3"], "restart: (-1.0, 3.0) (expected: "),
        (["--restart=10:nan"], "restart: (10.0, nan) (expected: "),
        (["--plot=storm.png"], "argument --plot: 'storm.png' (expected: a file whose"),
        (["--plot=-"], "argument --plot: '-' (expected: a file, not standard output)"),
        (["orders"], "'orders' (expected: MODULE:FUNCTION or path/file.py:FUNCTION)"),
        (["math:pi"], "'math:pi' (expected: a plain function that returns a Sess"),
        (["math:tau2"], "'math:tau2': module 'math' has no attribute 'tau2'"),
    ],
)
def test_bad_usage_is_one_clear_line(arguments, message, capsys):
    """Nothing is simulated, and nothing is printed but what is wrong."""
    code = main(["simulate", *arguments])
    out, err = capsys.readouterr()

    assert (64, "") == (code, out)
    assert err.startswith(f"aioretry-smithy: error: {message}")
    assert 1 == err.count("\n")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("nothing", ":nothing: ValueError: chains['your chain'](): None (expected"),
        ("broken", ":broken: FileNotFoundError: orders.toml"),
        ("bad_setting", ":bad_setting: ValueError: an empty name"),
        ("quitter", ":quitter: SystemExit: 3"),
        ("wrong", ":wrong: KeyError: 'token'"),
    ],
)
def test_bad_chain_is_one_clear_line_too(chains, function, message, capsys):
    """Whether it cannot be made, or raises what is no failure of a request."""
    code = main(["simulate", f"{chains}:{function}", *TINY])
    out, err = capsys.readouterr()

    assert (64, "") == (code, out)
    assert message in err
    assert 1 == err.count("\n")


def test_ctrl_c_ends_it(chains, capsys):
    """As it ends other commands."""
    code = main(["simulate", f"{chains}:stopped", *TINY])

    assert (130, ("", "")) == (code, capsys.readouterr())


class Terminal(io.StringIO):
    """A file that is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize(("kind", "shown"), [(Terminal, True), (io.StringIO, False)])
def test_progress_is_a_bar_where_rich_is(kind, shown, monkeypatch):
    """One for each chain, and gone when all is over."""
    rich_output = pytest.importorskip("aioretry_smithy._cli.rich_output")
    monkeypatch.setenv("TERM", "xterm")
    file = kind()
    with rich_output.RichOutput(file).progress() as progress:
        progress("plain retries", 0.5)
        progress("no retries", 0.5)
        progress("no retries", 1.0)

    assert shown == ("no retries" in file.getvalue())
    assert shown == ("plain retries" in file.getvalue())


SOURCE = """
from __future__ import annotations
import dataclasses
import neighbour_of_orders

@dataclasses.dataclass
class Chains:
    name: str

    def ours():
        return neighbour_of_orders.ANSWER

def ours():
    return neighbour_of_orders.ANSWER
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a module, what it imports, and some that are broken."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    files = {
        "orders_of_tests.py": SOURCE,
        "neighbour_of_orders.py": "ANSWER = 42",
        "typo_of_tests.py": "def broken(:",
        "quitter_of_tests.py": "raise SystemExit(3)",
        "broken_of_tests.py": "raise KeyError('token')",
    }
    for name, source in files.items():
        (tmp_path / name).write_text(source)
    return tmp_path


@pytest.mark.parametrize("function", ["ours", "Chains.ours"])
def test_function_of_a_module(folder, monkeypatch, function):
    """Modules of the working directory are found, and what they import."""
    monkeypatch.chdir(folder)

    assert 42 == find_function(f"orders_of_tests:{function}")()


def test_function_of_a_file(folder):
    """A file anywhere, which may import what lies beside it."""
    assert 42 == find_function(f"{folder}/orders_of_tests.py:ours")()


def test_function_of_a_file_in_the_working_directory(folder, monkeypatch):
    """The path may be relative."""
    monkeypatch.chdir(folder)

    assert 42 == find_function("orders_of_tests.py:ours")()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("orders_of_tests", "(expected: MODULE:FUNCTION or path/file.py:FUNCTION)"),
        (":ours", "':ours' (expected: MODULE:FUNCTION or path/file.py:FUNCTION)"),
        ("orders_of_tests:", "'orders_of_tests:' (expected: MODULE"),
        ("orders_of_tests:theirs", "has no attribute 'theirs'"),
        ("nothing_of_tests:ours", "cannot import 'nothing_of_tests': ModuleNotFound"),
        ("nothing_of_tests.py:ours", "cannot import 'nothing_of_tests.py': FileNotF"),
        (".:ours", "cannot import '.': "),
        ("typo_of_tests:ours", "cannot import 'typo_of_tests': SyntaxError: invalid"),
        ("quitter_of_tests:ours", "cannot import 'quitter_of_tests': SystemExit: 3"),
        ("broken_of_tests.py:ours", "'broken_of_tests.py': KeyError: 'token'"),
    ],
)
def test_what_cannot_be_used_is_named(folder, monkeypatch, name, message):
    """Each mistake is one clear text."""
    monkeypatch.chdir(folder)
    with pytest.raises(UsageError) as caught:
        find_function(name)

    assert message in str(caught.value)


def test_replicas_take_the_place_of_one_server(capsys):
    """One of them dies; the table says what each got."""
    code = main(["simulate", *TINY, "--replicas=3", "--dead=1", "--json"])
    document = json.loads(capsys.readouterr().out)

    assert 0 == code
    assert (3, 1) == tuple(document["settings"][name] for name in ("replicas", "dead"))
    assert all(3 == len(run["by_replica"]) for run in document["runs"].values())
    assert 0 == main(["simulate", *TINY, "--replicas=3", "--slow=10"])
    out = capsys.readouterr().out
    assert "3 replicas can answer 15 a second" in out
    assert "shares, %" in out


def test_more_trouble_than_replicas_is_refused(capsys):
    """In one line, as any number that is out of range."""
    code = main(["simulate", "--replicas=3", "--dead=4"])
    out, err = capsys.readouterr()

    assert (64, "") == (code, out)
    assert "aioretry-smithy: error: dead: 4 (expected: <= replicas, 3)\n" == err


RESTART = ["--clients=2", "--rate=10", "--capacity=50", "--duration=8"]


def test_restart_takes_the_place_of_the_outage(capsys):
    """The table counts the calls that failed."""
    code = main(["simulate", *RESTART, "--restart=2:3"])
    out = capsys.readouterr().out

    assert 0 == code
    assert "can answer 50 a second; it is away from second 2 to 5." in out
    assert "failed: calls that were not answered, in the whole time" in out


HERD = ["--clients=2", "--rate=35", "--capacity=50", "--duration=15", "--restart=3:3"]


def test_backlog_that_outlasts_the_attempts_is_told_of(capsys):
    """In one line below the table, with what helps."""
    assert 0 == main(["simulate", *HERD])
    *_, last = capsys.readouterr().out.splitlines()

    assert re.fullmatch(
        r"backlog: [1-9]\d* requests of standard chain timed out in the queue after the"
        r' restart; try concurrency="aimd"',
        last,
    )


@pytest.mark.slow
@pytest.mark.parametrize("changed", ["attempt_timeout=10.0", 'concurrency="aimd"'])
def test_no_backlog_is_told_of_where_attempts_outlast_it(capsys, tmp_path, changed):
    """Or where a limit keeps them out of the queue."""
    chains = tmp_path / "chains.py"
    chains.write_text(
        "from aioretry_smithy import SessionBuilder\n"
        "def chain():\n"
        "    settings = {'attempt_timeout': 1.0, 'logging': None}\n"
        f"    settings |= dict({changed})\n"
        "    return SessionBuilder.standard(**settings)\n"
    )
    assert 0 == main(["simulate", f"{chains}:chain", *HERD])

    assert "backlog" not in capsys.readouterr().out


def test_restart_stands_beside_an_outage_that_is_asked_for(capsys):
    """Both are in the document."""
    arguments = [*RESTART, "--restart=2:1", "--outage=4:2:0.2", "--json"]
    assert 0 == main(["simulate", *arguments])
    settings = json.loads(capsys.readouterr().out)["settings"]

    assert ([4.0, 2.0, 0.2], [2.0, 1.0]) == (settings["outage"], settings["restart"])


def test_there_may_be_no_restart(capsys):
    """As there may be no outage."""
    arguments = [*TINY, "--restart=none", "--json"]
    assert 0 == main(["simulate", *arguments])
    settings = json.loads(capsys.readouterr().out)["settings"]

    assert ([2.0, 1.0, 0.2], None) == (settings["outage"], settings["restart"])
