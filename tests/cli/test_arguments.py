"""The arguments of the command line: what they become, and what is refused."""

import runpy
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from yarl import URL

from aioretry_smithy import Backoff
from aioretry_smithy.__main__ import main
from aioretry_smithy._cli.arguments import parse

URL_TEXT = "http://127.0.0.1:9/"


def test_request_has_the_defaults_of_the_library():
    """Nothing but a URL leaves every setting to the library and to aiohttp."""
    arguments = parse(["request", URL_TEXT])

    assert URL(URL_TEXT) == arguments.url
    assert arguments.method is None
    assert [] == arguments.headers
    assert arguments.data is None
    assert "failsafe" == arguments.strategy
    assert Backoff.of_default() is arguments.backoff
    assert arguments.max_total_attempts is None
    assert arguments.attempt_timeout is None
    assert arguments.response_timeout is None
    assert arguments.timeline is None
    assert not arguments.json


def test_request_reads_every_option():
    """Each option arrives as the value that it stands for, under both its names."""
    arguments = parse(
        [
            "request",
            URL_TEXT,
            "-X",
            "patch",
            "-H",
            "A: 1",
            "--header",
            "B:\t2: 3",
            "-d",
            "x=1",
            "--data",
            "y=2",
            "--strategy=on-unprocessed",
            "--backoff=fixed=1s,jitter=0",
            "--max-total-attempts=3",
            "--attempt-timeout=0.5",
            "--response-timeout=7",
            "--timeline=call.svg",
            "--json",
        ]
    )

    assert "PATCH" == arguments.method
    assert [("A", "1"), ("B", "2: 3")] == arguments.headers
    assert [b"x=1", b"y=2"] == arguments.data
    assert "on-unprocessed" == arguments.strategy
    assert Backoff.fixed(1) == arguments.backoff
    assert 3 == arguments.max_total_attempts
    assert 0.5 == arguments.attempt_timeout
    assert 7.0 == arguments.response_timeout
    assert Path("call.svg") == arguments.timeline
    assert arguments.json


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.5", Backoff.fixed(0.5).with_jitter(0.2)),
        ("2", Backoff.fixed(2.0).with_jitter(0.2)),
        ("500ms", Backoff.fixed(0.5).with_jitter(0.2)),
        ("fixed=2,jitter=0", Backoff.fixed(2.0)),
        ("fixed=0.5,jitter=0", Backoff.fixed(0.5)),
        ("fixed=120s,jitter=0", Backoff.fixed(120.0)),
        ("fixed=120.0,jitter=0", Backoff.fixed(120.0)),
        ("exponential=0.2:300:3,jitter=0", Backoff.exponential(0.2, 300.0, 3.0)),
        ("random=100ms:2,jitter=0", Backoff.random(0.1, 2.0)),
        ("", Backoff.of_default()),
    ],
)
def test_waits_are_in_seconds(text, expected):
    """As the other times are; a unit says otherwise."""
    assert expected == parse(["request", URL_TEXT, "--backoff", text]).backoff


def test_data_keeps_bytes_that_are_no_text():
    """Bytes that the shell passed on go out as the same bytes."""
    arguments = parse(["request", URL_TEXT, "-d", "\udcff"])

    assert [b"\xff"] == arguments.data


@pytest.mark.parametrize(
    "url", ["https://example.com", "http://[::1]:80/", "http://ü.example/a b?c=d#e"]
)
def test_good_url_passes(url):
    """IPv6, other alphabets and spaces in the path are no reason to refuse a URL."""
    assert URL(url) == parse(["request", url]).url


BAD = {
    "unknown command": (["dance"], "argument COMMAND: invalid choice: 'dance'"),
    "no URL": (["request"], "the following arguments are required: URL"),
    "unknown option": (["request", URL_TEXT, "--dance"], "unrecognized arguments: "),
    "abbreviated": (["request", URL_TEXT, "--strat=never"], "unrecognized arguments: "),
    "line break": (["request", URL_TEXT, "a\nb"], r"unrecognized arguments: a\nb"),
    **{
        f"URL {url[:24]}": (["request", url], "argument URL: 'http")
        for url in (
            "http://",
            "http:///path",
            "http://[::1",
            "http://host:99999/",
            "http://a..b/",
            f"http://{'a' * 64}.example/",
            "http://a b/",
            "http://xn--a.example/",
            "http://ex\nample/",
            "http://example.com/\udcff",
        )
    },
    "URL ftp": (["request", "ftp://h/"], "(expected: http:// or https://, and a host)"),
    "URL without scheme": (["request", "example.com"], "argument URL: 'example.com' "),
    "empty URL": (["request", ""], "argument URL: '' "),
    **{
        f"{option} {value!r}": (["request", URL_TEXT, option, value], expected)
        for option, value, expected in (
            ("-X", "GE T", "argument -X/--method: 'GE T' (expected: "),
            ("-X", "", "argument -X/--method: '' (expected: "),
            ("-H", "no colon", "argument -H/--header: 'no colon' (expected: "),
            ("-H", ": no name", "argument -H/--header: ': no name' (expected: "),
            ("-H", "sp ace: 1", "argument -H/--header: 'sp ace: 1' (expected: "),
            ("-H", "A: b\r\nC: d", r"argument -H/--header: 'A: b\r\nC: d' (expected: "),
            ("-H", "A: \udcff", "argument -H/--header: "),
            ("--strategy", "often", "argument --strategy: invalid choice: 'often'"),
            ("--backoff", "fixed=x", "argument --backoff: spec: 'fixed=x' (expected: "),
            (
                "--backoff",
                "fixed=x",
                "(expected: fixed=delay, delays as 1.5, 1.5s or 200ms)",
            ),
            (
                "--backoff",
                "exponential=200:10000",
                "argument --backoff: initial_delay: 200 s; units are seconds. Write",
            ),
            ("--backoff", "200", "argument --backoff: delay: 200 s; units are s"),
            (
                "--backoff",
                "1.2.3",
                "argument --backoff: spec: 'fixed=1.2.3' (exp",
            ),
            (
                "--backoff",
                "random=5:1",
                "argument --backoff: spec: 'random=5:1' (exp",
            ),
            ("--max-total-attempts", "0", "argument --max-total-attempts: '0' "),
            ("--max-total-attempts", "1.5", "argument --max-total-attempts: '1.5' "),
            ("--max-total-attempts", "٣", "argument --max-total-attempts: '٣' "),
            ("--max-total-attempts", "9" * 5000, "argument --max-total-attempts: '999"),
            ("--attempt-timeout", "0", "argument --attempt-timeout: '0' "),
            ("--attempt-timeout", "nan", "argument --attempt-timeout: 'nan' "),
            ("--attempt-timeout", "soon", "argument --attempt-timeout: 'soon' "),
            ("--response-timeout", "inf", "argument --response-timeout: 'inf' "),
            ("--response-timeout", "-1", "argument --response-timeout: '-1' "),
            ("--timeline", "missing/a.svg", "argument --timeline: 'missing/a.svg' "),
            ("--timeline", "/", "(expected: a file in a directory that exists)"),
            ("--timeline", "-", "'-' (expected: a file, not standard output)"),
            ("--timeline", f"{'a' * 300}/a.svg", "argument --timeline: 'aaaa"),
            ("--timeline", "", "argument --timeline: '' (expected: "),
            ("--timeline", "a\0b", r"argument --timeline: 'a\x00b' (expected: "),
        )
    },
}


@pytest.mark.parametrize(("arguments", "expected"), BAD.values(), ids=BAD)
def test_bad_usage_is_one_clear_line(arguments, expected, capsys):
    """Bad usage is named in one line on standard error; the code is 64."""
    code = main(arguments)
    out, err = capsys.readouterr()

    assert 64 == code
    assert "" == out
    assert err.startswith("aioretry-smithy: error: ")
    assert expected in err
    assert 1 == len(err.splitlines())


def test_bad_url_keeps_its_password_to_itself(capsys):
    """A password in a URL that is refused does not get into anybody's log."""
    code = main(["request", "http://user:hunter2@host:99999/"])

    assert 64 == code
    assert "hunter2" not in capsys.readouterr().err


def test_bad_environment_is_bad_usage(capsys, monkeypatch):
    """A default from the environment is checked before anything is sent, too."""
    variable = "AIORETRY_SMITHY_DEFAULT_MAX_TOTAL_ATTEMPTS"
    monkeypatch.setenv(variable, "many")
    code = main(["request", URL_TEXT])

    expected = f"{variable}: 'many' (expected: a positive integer)"
    assert 64 == code
    assert f"aioretry-smithy: error: {expected}\n" == capsys.readouterr().err


def test_version_is_the_distribution_s(capsys):
    """``--version`` says the installed version and succeeds."""
    code = main(["--version"])

    assert 0 == code
    assert f"aioretry-smithy {version('aioretry-smithy')}\n" == capsys.readouterr().out


def test_checkout_that_is_not_installed_runs(capsys, monkeypatch):
    """Only who asks for the version needs the metadata of an installation."""

    def not_installed(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", not_installed)
    code = main(["demo", "--help"])

    assert 0 == code
    with pytest.raises(PackageNotFoundError):
        main(["--version"])


@pytest.mark.parametrize("arguments", [[], ["demo"], ["request"]])
def test_help_succeeds(arguments, capsys):
    """Every command has a help that goes to standard output."""
    code = main([*arguments, "--help"])
    out, err = capsys.readouterr()

    assert 0 == code
    assert "" == err
    assert out.startswith(" ".join(["usage: aioretry-smithy", *arguments]))


def test_no_argument_prints_the_help(capsys, monkeypatch):
    """The bare name shows what there is, and is bad usage for a script."""
    main(["--help"])
    asked_for = capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["aioretry-smithy"])
    codes = [main([]), main()]
    out, err = capsys.readouterr()

    assert [64, 64] == codes
    assert "" == out
    assert asked_for * 2 == err


def test_help_says_every_default(capsys):
    """No option of ``request`` leaves its reader guessing what happens without it."""
    main(["request", "--help"])
    _, options = capsys.readouterr().out.split("options:")
    described = [part for part in options.split("\n  -")[2:] if part]

    assert 10 == len(described)
    assert all("(default:" in " ".join(part.split()) for part in described)


def test_module_runs_as_a_program(capsys, monkeypatch):
    """``python -m aioretry_smithy`` ends with the code of the command."""
    monkeypatch.setattr(sys, "argv", ["aioretry-smithy", "--version"])
    monkeypatch.delitem(sys.modules, "aioretry_smithy.__main__")
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("aioretry_smithy", run_name="__main__")

    assert 0 == stop.value.code
    assert capsys.readouterr().out.startswith("aioretry-smithy ")
