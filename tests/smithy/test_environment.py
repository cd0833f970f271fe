"""The strategy that the environment and the AWS profile file ask for."""

import os
import textwrap
from pathlib import Path

import pytest
from chains import bad_argument, raises_exactly
from command_line import needs_posix

from aioretry_smithy.smithy import (
    AdaptiveRetryStrategy,
    SimpleRetryStrategy,
    StandardRetryStrategy,
    strategy_from_env,
)
from aioretry_smithy.smithy.mode import read_profile

NAMES = "simple, standard or adaptive"
VARIABLES = ("AWS_RETRY_MODE", "AWS_MAX_ATTEMPTS", "AWS_CONFIG_FILE", "AWS_PROFILE")


def config_file(folder, text):
    """Write a profile file and return its path."""
    path = folder / "config"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return str(path)


def kind_and_attempts(environ):
    strategy = strategy_from_env(environ)
    return type(strategy), strategy.max_attempts


@pytest.mark.parametrize(
    ("environ", "kind", "max_attempts"),
    [
        ({}, StandardRetryStrategy, 3),
        ({"AWS_RETRY_MODE": "", "AWS_MAX_ATTEMPTS": ""}, StandardRetryStrategy, 3),
        ({"AWS_RETRY_MODE": " ", "AWS_MAX_ATTEMPTS": " "}, StandardRetryStrategy, 3),
        ({"AWS_RETRY_MODE": "Adaptive"}, AdaptiveRetryStrategy, 3),
        ({"AWS_RETRY_MODE": " simple "}, SimpleRetryStrategy, 5),
        ({"AWS_MAX_ATTEMPTS": "1"}, StandardRetryStrategy, 1),
        (
            {"AWS_RETRY_MODE": "adaptive", "AWS_MAX_ATTEMPTS": " 10 "},
            AdaptiveRetryStrategy,
            10,
        ),
    ],
)
def test_environment_says_which_strategy(environ, kind, max_attempts):
    """A variable that is empty is as good as none."""
    assert (kind, max_attempts) == kind_and_attempts(environ)


@pytest.mark.parametrize("mode", ["off", "2"])
def test_unknown_mode_in_the_environment_is_refused(mode):
    """The error names the variable, which may be set far away."""
    with bad_argument("AWS_RETRY_MODE", mode, NAMES):
        strategy_from_env({"AWS_RETRY_MODE": mode})


@pytest.mark.parametrize("name", [*VARIABLES, "HOME"])
@pytest.mark.parametrize("value", [None, 3, b"3", dict])
def test_variables_are_text(name, value):
    """A mapping that was made in a program may hold anything."""
    with bad_argument(name, value, "a str"):
        strategy_from_env({name: value})


@pytest.mark.parametrize("environ", ["AWS_RETRY_MODE=simple", [], 0, dict])
def test_environment_is_a_mapping(environ):
    """An object that holds no variables is refused, also an empty one."""
    with bad_argument("environ", environ, "a mapping, or None"):
        strategy_from_env(environ)


@pytest.mark.parametrize(
    "attempts", ["0", "-1", "+3", "3.0", "three", "\u0663", "1_000", "9" * 10]
)
def test_unreadable_attempts_in_the_environment_are_refused(attempts):
    """The error names the variable; nothing is guessed."""
    with bad_argument("AWS_MAX_ATTEMPTS", attempts, "a positive integer"):
        strategy_from_env({"AWS_MAX_ATTEMPTS": attempts})


def test_legacy_in_the_environment_means_standard():
    """The warning names the variable and points to the caller."""
    with pytest.warns(RuntimeWarning, match="^AWS_RETRY_MODE: .*legacy") as caught:
        strategy = strategy_from_env({"AWS_RETRY_MODE": "Legacy"})

    assert StandardRetryStrategy is type(strategy)
    assert __file__ == caught[0].filename


def test_legacy_in_the_file_means_standard(tmp_path):
    """The warning names file, section and key."""
    path = config_file(tmp_path, "[profile dev]\nretry_mode = legacy\n")
    with pytest.warns(RuntimeWarning) as caught:
        strategy_from_env({"AWS_CONFIG_FILE": path, "AWS_PROFILE": "dev"})

    place = f"{path} [profile dev] retry_mode: the mode 'legacy'"
    assert str(caught[0].message).startswith(place)
    assert __file__ == caught[0].filename


FILE = """\
    # Settings of a laptop.
    [default]
    region = eu-central-1
    retry_mode = adaptive
    max_attempts = 5

    [profile dev]
    retry_mode = Simple
    [profile "two words"]
    max_attempts: 7
    [sso-session dev]
    retry_mode = none
    [profile empty]
    retry_mode =
    max_attempts =
    """


@pytest.mark.parametrize(
    ("environ", "kind", "max_attempts"),
    [
        ({}, AdaptiveRetryStrategy, 5),
        ({"AWS_PROFILE": ""}, AdaptiveRetryStrategy, 5),
        ({"AWS_PROFILE": "default"}, AdaptiveRetryStrategy, 5),
        ({"AWS_PROFILE": "dev"}, SimpleRetryStrategy, 5),
        ({"AWS_PROFILE": "two words"}, StandardRetryStrategy, 7),
        ({"AWS_PROFILE": "empty"}, StandardRetryStrategy, 3),
        ({"AWS_PROFILE": "elsewhere"}, StandardRetryStrategy, 3),
        ({"AWS_RETRY_MODE": "simple"}, SimpleRetryStrategy, 5),
        ({"AWS_MAX_ATTEMPTS": "2"}, AdaptiveRetryStrategy, 2),
        ({"AWS_PROFILE": "dev", "AWS_MAX_ATTEMPTS": "2"}, SimpleRetryStrategy, 2),
    ],
)
def test_profile_says_what_the_environment_does_not(
    tmp_path, environ, kind, max_attempts
):
    """Each of the two settings by itself; a profile that is not there says nothing."""
    environ = {**environ, "AWS_CONFIG_FILE": config_file(tmp_path, FILE)}

    assert (kind, max_attempts) == kind_and_attempts(environ)


def test_file_is_not_read_without_need(tmp_path):
    """Where the environment says both, the file may be as odd as it likes."""
    environ = {"AWS_RETRY_MODE": "simple", "AWS_MAX_ATTEMPTS": "2"}
    environ["AWS_CONFIG_FILE"] = config_file(tmp_path, "no section")

    assert (SimpleRetryStrategy, 2) == kind_and_attempts(environ)


@pytest.mark.parametrize("home", ["HOME", "USERPROFILE"])
@pytest.mark.parametrize(
    "named", [None, "", "~/.aws/config", "$PLACE/config", "${PLACE}/config"]
)
def test_file_is_found_by_the_variables(tmp_path, home, named):
    """By default under the home directory, which is that of the same variables."""
    folder = tmp_path / ".aws"
    folder.mkdir()
    config_file(folder, "[default]\nmax_attempts = 9")
    environ = {home: str(tmp_path), "PLACE": str(folder)}
    if named is not None:
        environ["AWS_CONFIG_FILE"] = named

    assert 9 == strategy_from_env(environ).max_attempts


@pytest.mark.parametrize("folder", ["a$$b", "a$-b", "a$b", "$", "~"])
def test_sign_that_names_no_variable_is_part_of_the_path(tmp_path, folder):
    """As with botocore, also where it stands twice."""
    place = tmp_path / folder
    place.mkdir()
    path = config_file(place, "[default]\nmax_attempts = 9")

    assert 9 == strategy_from_env({"AWS_CONFIG_FILE": path}).max_attempts


def test_process_has_a_home(tmp_path, monkeypatch):
    """Without an argument the file of the user is read."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".aws").mkdir()
    config_file(tmp_path / ".aws", "[default]\nmax_attempts = 9")

    assert 9 == strategy_from_env().max_attempts


@pytest.mark.parametrize(
    ("text", "shown", "expected"),
    [
        ("retry_mode = fast", "retry_mode: 'fast'", NAMES),
        ("retry_mode = standard # as ever", "'standard # as ever'", NAMES),
        ("retry_mode = standard ; as ever", "'standard ; as ever'", NAMES),
        ("retry_mode = %(mode)s", "'%(mode)s'", NAMES),
        ("retry_mode = \u00e4", "'\u00e4'", NAMES),
        ("max_attempts = 0", "max_attempts: '0'", "a positive integer"),
        ("max_attempts = three", "'three'", "a positive integer"),
        ("max_attempts = 3 # as ever", "'3 # as ever'", "a positive integer"),
        ("max_attempts = 3\n  5", "'3\\n5'", "a positive integer"),
    ],
)
def test_unreadable_value_in_the_file_is_refused(tmp_path, text, shown, expected):
    """The error names file, section and key; a comment behind a value is part of it."""
    path = config_file(tmp_path, f"[profile dev]\n{text}\n")
    with pytest.raises(ValueError) as caught:
        strategy_from_env({"AWS_CONFIG_FILE": path, "AWS_PROFILE": "dev"})

    message = str(caught.value)
    key = text.partition(" ")[0]
    assert message.startswith(f"{path} [profile dev] {key}: ")
    assert message.endswith(f"{shown} (expected: {expected})")


def test_value_that_is_not_asked_for_may_be_unreadable(tmp_path):
    """Neither that of another profile, nor one that the environment stands above."""
    text = (
        "[default]\nretry_mode = odd\nmax_attempts = 4\n[profile a]\nmax_attempts = x"
    )
    environ = {"AWS_CONFIG_FILE": config_file(tmp_path, text)}

    assert (SimpleRetryStrategy, 4) == kind_and_attempts(
        {**environ, "AWS_RETRY_MODE": "simple"}
    )


@needs_posix("bytes in paths and variables")
def test_surrogates_in_a_value_can_be_reported(tmp_path):
    """A message with what is no UTF-8 in it can be printed."""
    path = tmp_path / "config"
    path.write_bytes(b"[default]\nretry_mode = \xe4\n")
    with pytest.raises(ValueError) as caught:
        strategy_from_env({"AWS_CONFIG_FILE": str(path)})

    assert str(caught.value).encode()


def written(folder, text):
    path = folder / "config"
    if isinstance(text, str):
        text = textwrap.dedent(text).encode()
    path.write_bytes(text)
    return path


def mode_of(path, profile="default"):
    """Return what a profile says about the mode, None without such a profile."""
    section = read_profile(path, profile)
    return None if section is None else section.values.get("retry_mode", "")


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
        '[profile "dev"]\nRetry_Mode: a\n',
        "[profile\tdev]\nretry_mode=a\n",
        "[Default]\nretry_mode = b\n",
        "[profile]\nretry_mode = a\n[profile dev more]\nretry_mode = b\n",
        "[sso-session dev]\nretry_mode = a\n",
        "[default]\nretry_mode = a ; ${b}\r\nmax_attempts = 3\r\n",
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
