"""The file in which AWS tools find their settings."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest
from chains import raises_exactly

from aioretry_smithy.smithy.mode import read_profile


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "config"
    if isinstance(text, str):
        text = textwrap.dedent(text).encode()
    path.write_bytes(text)
    return path


def mode_of(path: Path, profile: str = "default") -> str | None:
    """Return what a profile says about the mode, None without such a profile."""
    section = read_profile(path, profile)
    return None if section is None else section.values.get("retry_mode", "")


@pytest.mark.parametrize(
    ("profile", "section", "mode"),
    [
        ("default", "default", "a"),
        ("dev", "profile dev", "b"),
        ("two words", 'profile "two words"', "c"),
        ("tab", "profile\ttab", "d"),
        ("Dev", "profile Dev", "e"),
    ],
)
def test_profile_is_a_section(tmp_path, profile, section, mode):
    """It is found by its name, which may stand in quotes, and says where it stands."""
    path = written(
        tmp_path,
        """\
        [default]
        retry_mode = a
        [profile dev]
        retry_mode=b
        [profile "two words"]
        Retry_Mode: c
        [profile\ttab]
        retry_mode = d
        [profile Dev]
        retry_mode = e
        """,
    )
    found = read_profile(path, profile)

    assert f"{path} [{section}]" == found.place
    assert mode == found.values["retry_mode"]


@pytest.mark.parametrize(
    "section",
    [
        "dev",
        "profile",
        "profile dev more",
        "sso-session dev",
        'profile "dev',
        "Default",
    ],
)
def test_other_sections_are_no_profiles(tmp_path, section):
    """Their names are only like those of profiles."""
    path = written(tmp_path, f"[{section}]\nretry_mode = a\n")

    assert [None, None] == [mode_of(path, name) for name in ("dev", "default")]


def test_later_one_of_two_sections_for_a_profile_holds(tmp_path):
    """As with botocore, it replaces the earlier one altogether."""
    path = written(
        tmp_path,
        """\
        [default]
        retry_mode = a
        max_attempts = 3
        [profile default]
        region = eu-central-1
        """,
    )

    assert "" == mode_of(path)
    assert "max_attempts" not in read_profile(path, "default").values


def test_nested_block_is_one_value(tmp_path):
    """A line indented under ``s3 =`` is no setting of the profile."""
    path = written(
        tmp_path,
        """\
        [default]
        s3 =
            retry_mode = a
            max_concurrent_requests = 20
        retry_mode = b
        """,
    )
    values = read_profile(path, "default").values

    assert ["s3", "retry_mode"] == list(values)
    assert "b" == values["retry_mode"]


@pytest.mark.parametrize(
    ("line", "mode"),
    [
        ("# a comment\nretry_mode = a", "a"),
        ("; a comment\nretry_mode = a", "a"),
        ("retry_mode = a\n# a comment", "a"),
        ("retry_mode = a # part of it", "a # part of it"),
        ("retry_mode = a ; part of it", "a ; part of it"),
        ("retry_mode = %(none)s ${none}", "%(none)s ${none}"),
        ("    retry_mode = a", "a"),
        ("RETRY_MODE=a", "a"),
        ("retry_mode = a\r\nregion = b\r\n", "a"),
    ],
)
def test_comments_have_lines_of_their_own(tmp_path, line, mode):
    """Behind a value they are part of it, and nothing in it is replaced."""
    assert mode == mode_of(written(tmp_path, f"[default]\n{line}\n"))


def test_file_that_is_not_there_has_no_profiles(tmp_path):
    """Nor has a directory, a device, or a file below another file."""
    path = written(tmp_path, "[default]\nretry_mode = a\n")
    others = [tmp_path / "none", tmp_path, Path(os.devnull), path / "config"]

    assert [None] * 4 == [mode_of(each) for each in others]


def test_file_that_cannot_be_opened_has_no_profiles(tmp_path, monkeypatch):
    """It may belong to another user, in a home directory that is shared."""

    def refuse(*arguments, **options):
        raise PermissionError

    path = written(tmp_path, "[default]\nretry_mode = a\n")
    monkeypatch.setattr(Path, "open", refuse)

    assert mode_of(path) is None


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n# nothing\n",
        b"[default]\nretry_mode = a\n[profile \xe4]\n# \xff\xfe\nregion = \xe4\n",
        b"\xef\xbb\xbf[default]\nretry_mode = a\n",
    ],
)
def test_odd_bytes_do_no_harm(tmp_path, text):
    """A file that is not UTF-8, or begins with its mark, is read all the same."""
    assert mode_of(written(tmp_path, text)) == ("a" if b"=" in text else None)


def test_profile_of_odd_bytes_is_found(tmp_path):
    """Its name comes from the environment as Python decodes that."""
    path = written(tmp_path, b"[profile \xe4]\nretry_mode = a\n")

    assert "a" == mode_of(path, os.fsdecode(b"\xe4") if os.name != "nt" else "\udce4")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"[default]\nregion = a\n[default]\nregion = b\n", 3),
        (b"[default]\nregion = a\nregion = b\n", 3),
        (b"aws_secret_access_key = secret\n", 1),
        (b"[default]\nregion = a\n\naws_secret_access_key secret\n", 4),
        (b"[default\nregion = a\n", 1),
        ("[default]\nregion = a\n".encode("utf-16"), 1),
    ],
)
def test_file_that_cannot_be_read_is_refused(tmp_path, text, line):
    """By file and line; nothing of the line is shown, it may be a secret key."""
    path = written(tmp_path, text)
    expected = "a [section], or key = value in one, each of them once"
    with raises_exactly(f"{path}: line {line} (expected: {expected})") as caught:
        read_profile(path, "default")

    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    "text",
    [
        "[default]\nretry_mode = a\n[profile dev]\nretry_mode = b\n",
        "[profile default]\nretry_mode = a\n[default]\nmax_attempts = 3\n",
        "[default]\nmax_attempts = 3\n[profile default]\nretry_mode = a\n",
        '[profile "dev"]\nretry_mode = a\n[profile dev]\nregion = b\n',
        "[profile 'dev]\nretry_mode = a\n",
        "[DEFAULT]\nretry_mode = a\n[profile dev]\nregion = b\n",
        "[default]\nretry_mode = a # b\nmax_attempts = 3 ; c\n",
        "[default]\n# retry_mode = a\n; retry_mode = b\nretry_mode: c\n",
        "[default]\ns3 =\n  max_attempts = 9\n  addressing_style = path\n",
        "[default]\nregion = a\n  retry_mode = b\n",
        "[default]\nRetry_Mode = A\nretry_mode2 = b\n",
        "[default]\nretry_mode =\nmax_attempts = %(retry_mode)s\n",
        "[dev]\nretry_mode = a\n[services dev]\nretry_mode = b\n",
        "[default]\nregion = a\n[default]\nregion = b\n",
        "[default]\nretry_mode = a\nRETRY_MODE = b\n",
        "retry_mode = a\n",
        "[default]\nretry_mode\n",
        "",
    ],
)
def test_file_is_read_as_botocore_reads_it(tmp_path, text):
    """The same values for the same profiles, and the same files refused."""
    configloader = pytest.importorskip("botocore.configloader")
    exceptions = pytest.importorskip("botocore.exceptions")
    path = written(tmp_path, text)
    keys = ("retry_mode", "max_attempts")

    def ours():
        sections = {name: read_profile(path, name) for name in ("default", "dev")}
        return {
            name: {key: section.values[key] for key in keys if key in section.values}
            for name, section in sections.items()
            if section is not None
        }

    try:
        profiles = configloader.load_config(str(path))["profiles"]
    except exceptions.ConfigParseError:
        with pytest.raises(ValueError, match="line"):
            ours()
        return
    theirs = {
        name: {key: values[key] for key in keys if key in values}
        for name, values in profiles.items()
    }

    assert theirs == ours()
