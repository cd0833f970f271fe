"""Text that goes out, and the characters of bodies that are shown."""

import encodings
import pkgutil
import random

import pytest

from aioretry_smithy._text.printable import BodyHead, encodable, is_text, shortened


@pytest.mark.parametrize("text", ["", "a%b\\c", "Größe", "\x00\x7f", "😀", "\uffff"])
def test_text_that_utf8_carries_stays(text):
    """Control characters and unassigned code points too."""
    assert text == encodable(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\udcff", r"\udcff"),
        ("é\ud800a", r"é\ud800a"),
        ("\ud83d\ude00", r"\ud83d\ude00"),
    ],
)
def test_half_a_surrogate_pair_is_escaped(text, shown):
    """So are two halves that nobody put together."""
    assert shown == encodable(text)


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "TEXT/HTML; charset=utf-8",
        "text/event-stream",
        "application/json",
        "application/problem+json; charset=utf-8",
        "application/x-amz-json-1.1",
        "application/x-ndjson",
        "application/xml",
        "image/svg+xml",
        "application/javascript",
        "application/x-www-form-urlencoded",
        "application/yaml",
        "application/graphql",
        " application/json ",
    ],
)
def test_text_is_for_people(content_type):
    """The kind is text, or a word of the subtype names a notation of texts."""
    assert is_text(content_type)


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "json",
        "application/octet-stream",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/grpc",
        "image/png; name=text/plain",
        "multipart/form-data; boundary=json",
        "multipart/json",
        "application/pdf",
    ],
)
def test_all_else_is_not(content_type):
    """A body that people cannot read has no preview."""
    assert not is_text(content_type)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("", None), ("ab", "ab"), ("abc", "abc"), ("abcd", "abc…"), ("äöüß", "äöü…")],
)
def test_text_is_shortened(text, shown):
    """Only what was cut ends with an ellipsis."""
    assert shown == shortened(text, 3)


def text_of(data, content_type="text/plain", max_length=3):
    head = BodyHead(content_type, max_length)
    for position in range(len(data)):
        head.add(data[position : position + 1])
    return head.text()


@pytest.mark.parametrize(
    "charset",
    ["utf-8", "UTF8", "utf-16", "utf-16-le", "utf-32", "utf-8-sig", "gb18030", "utf-7"],
)
@pytest.mark.parametrize(
    ("body", "shown"),
    [("", None), ("好é", "好é"), ("好é\U0001f600", "好é\U0001f600"), ("x" * 9, "xxx…")],
)
def test_charset_of_the_content_type_is_used(charset, body, shown):
    """Characters are counted, not bytes, and a byte order mark is none of them."""
    content_type = f'text/plain; a=b; charset="{charset}"'

    assert shown == text_of(body.encode(charset), content_type)


@pytest.mark.parametrize(
    "charset",
    ["klingon", "", "zip", "base64", "rot13", "idna", "punycode", "undefined", "a\0b",
     "unicode_escape", "raw_unicode_escape", "é", "x" * 5000],
)  # fmt: skip
def test_charset_that_is_none_is_taken_for_utf_8(charset, recwarn):
    """A server may say what it likes; nothing is unpacked and nothing is raised."""
    assert "é\\q…" == text_of("é\\qw".encode(), f"text/plain; charset={charset}")
    assert not recwarn.list


def test_character_that_has_not_come_whole_is_left_out():
    """It comes with the next bytes."""
    assert "é" == text_of("éé".encode()[:3])
    assert text_of("é".encode()[:1]) is None


@pytest.mark.parametrize("charset", ["utf-16", "UTF-32", '"utf_16"'])
def test_byte_order_mark_may_be_missing(charset):
    """Most who leave it out are little-endian."""
    data = "好é".encode(charset.strip('"').lower() + "-le")

    assert "好é" == text_of(data, f"text/plain; charset={charset}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "charset", [module.name for module in pkgutil.iter_modules(encodings.__path__)]
)
def test_no_charset_makes_a_preview_fail(charset):
    """A server may send any bytes, and call them anything."""
    chance = random.Random(0)
    signs = b"+-~{}\x1b$B()=?&!a&#x \xff\xfe\x80"
    for length in range(60):
        half = bytes(chance.choice(signs) for _ in range(length))
        data = half + chance.randbytes(length)

        assert isinstance(text_of(data, f"text/plain; charset={charset}"), str | None)


def test_wrong_escapes_are_decoded_as_utf_8():
    """Decoders of ISO-2022 have no replacement for them."""
    data = b"ab\x1b({\xff\xff\xff\x1b(a($$"

    assert "ab\x1b({…" == text_of(data, "text/plain; charset=iso-2022-kr", 5)


def test_what_cannot_be_decoded_is_marked():
    """Wrong bytes do not take the rest with them."""
    assert "a�b" == text_of(b"a\xffb")


@pytest.mark.parametrize("byte", [b"\0", b"\x1f", b"\x0b"])
def test_bytes_that_no_text_has_show_that_it_is_none(byte):
    """UTF-16 that does not say so and compressed data would both be gibberish."""
    assert text_of(b"ab" + byte) is None


def test_usual_control_characters_are_text():
    """Tabs, ends of lines and pages, and the colours of a terminal."""
    assert "\t\r\n\f\x1b" == text_of(b"\t\r\n\f\x1b", max_length=9)


@pytest.mark.parametrize("character", ["x", "é", "好", "\U0001f600"])
@pytest.mark.parametrize("charset", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("length", [2, 3, 4, 5, 100])
def test_enough_bytes_are_kept_and_no_more(character, charset, length):
    """They tell all characters to show, and whether there are others."""
    head = BodyHead(f"text/plain; charset={charset}", 3)
    head.add((character * length).encode(charset))
    cut = "…" if length > 3 else ""

    assert character * min(length, 3) + cut == head.text()
    assert len(head._data) <= 20


def test_what_was_not_decoded_counts_as_cut():
    """An encoding may spend all the bytes on the first characters."""
    head = BodyHead("text/plain; charset=iso-2022-jp", 3)
    head.add(b"\x1b$B\x1b(B" * 3 + b"abcdef")

    assert head.is_full
    assert "ab…" == head.text()
