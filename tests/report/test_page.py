"""The report as a page."""

import re
from html import unescape
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_lines import call, counted, retried, sent, troubles

from aioretry_smithy import Report
from aioretry_smithy._report.document import Table, blocks, shown
from aioretry_smithy._report.page import to_frame, to_html

XHTML = "{http://www.w3.org/1999/xhtml}"
OURS = {"id", "request_started_at", "type"}
"""What a line does not choose."""

HOSTILE = "<script>alert(1)</script>\"'&amp;\x00\x1b[2J\u202e\ud800\ufffe{{7*7}}-->]]>"


def parsed(answers):
    return ET.fromstring(to_html(answers))


def tags(page):
    return [each.tag for each in page.iter()]


def said(page):
    return " ".join("".join(page.itertext()).split())


def with_texts(value, text, key=None):
    """Put a text in place of each text and each key that a line may choose."""
    if isinstance(value, str):
        return value if key in OURS else text
    if isinstance(value, list):
        return [with_texts(each, text, key) for each in value]
    if isinstance(value, dict):
        return {
            text if key == "request_headers" else name: with_texts(each, text, name)
            for name, each in value.items()
        }
    return value


def page_of(text):
    """Return the page about calls that have a text wherever they may."""
    return to_html(counted(with_texts(troubles(endpoint="here"), text)))


def test_page_has_what_the_text_has():
    """Lines, headings and cells of tables are written alike, in the same order."""
    answers = counted(troubles())
    texts = []
    for block in blocks(answers):
        if isinstance(block, Table):
            texts += [cell for row in block.rows for cell in row]
        elif isinstance(block, str):
            texts.append(block)
    page, position = "".join(parsed(answers).itertext()), 0

    for text in texts:
        position = page.index(text, position)
    assert len(texts) > 80


def test_numbers_of_a_table_are_told_from_texts():
    """They stand on the right, as in the text."""
    page = parsed(counted([call(status=503)]))
    cells = [each for each in page.iter(f"{XHTML}td") if "503" == each.text]

    assert ["text", "text"] == [each.get("class") for each in cells]
    (waited,) = (each for each in page.iter(f"{XHTML}th") if "waited" == each.text)
    assert "number" == waited.get("class")


def test_a_page_is_complete_in_itself():
    """It has no script, asks for nothing, and its policy would allow neither."""
    html = to_html(counted(troubles()))
    page = ET.fromstring(html)
    policy = page.find(f".//{XHTML}meta[@http-equiv='Content-Security-Policy']")
    attributes = {name for each in page.iter() for name in each.attrib}

    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" == policy.get(
        "content"
    )
    assert not {f"{XHTML}{name}" for name in ("script", "link", "iframe", "img")} & {
        *tags(page)
    }
    assert not {name for name in attributes if name.startswith("on")}
    assert not {"href", "src", "action", "srcset"} & attributes
    assert "url(" not in html
    assert "@import" not in html


def test_a_long_tree_is_cut():
    """Of a call with very many attempts, the beginning is shown."""
    attempts = [sent(n, 0.1, 503) for n in range(300)]

    page = said(parsed(counted([call(*attempts, took=300.0)])))

    assert "… 1 more lines" in page


@pytest.mark.parametrize(("attempts", "is_cut"), [(3, False), (90, True)])
def test_a_page_is_below_300_kilobytes(attempts, is_cut):
    """The longest timelines are left out, long trees are cut, and each says so."""
    place = "replica" * 10

    def failed(status, took):
        made = (sent(n, 0.1, status, endpoint=place) for n in range(attempts))
        return call(*made, took=took, status=status)

    calls = [failed(500 + n % 20, 90.0 + n) for n in range(40)]
    html = to_html(counted(calls))

    assert len(html.encode()) <= 300_000
    assert is_cut is ("its timeline is too long for a page" in html)
    assert is_cut is ("more lines" in html)


@pytest.mark.parametrize("text", [HOSTILE, "\u05d0\u0301" * 20, "]]>", "\x7f\x85\n"])
def test_hostile_texts_change_no_markup(text):
    """Whatever a line says, the elements are the same, and nothing is raw."""
    page = page_of(text)

    assert tags(ET.fromstring(page)) == tags(ET.fromstring(page_of("x")))
    assert page.encode().decode() == page
    assert not re.search(r"[^\n\x20-\x7e\xa0-\U0010ffff]", page)
    assert "\u202e" not in page
    assert "<script" not in page


@given(text=st.text(st.characters(), max_size=60))
def test_any_text_is_well_formed_and_legible(text):
    """Every text is shown with all its characters, none of which acts."""
    page = page_of(text)

    ET.fromstring(page)

    assert page.encode().decode() == page
    assert page.replace("\n", " ").isprintable()
    assert shown(text) in unescape(page)


def test_a_call_is_drawn_once():
    """One that is an example of an ending, or twice among examples, is not repeated."""
    lost = retried(status=503, is_success=False)
    page = parsed(counted([lost, retried(), call()]))

    assert 3 == len(page.findall(f".//{XHTML}figure"))
    assert 3 == len(page.findall(f".//{XHTML}pre"))


def test_a_notebook_gets_the_page_in_a_frame():
    """The frame may do nothing, and leaves the page around it alone."""
    report = Report(counted(troubles()))

    (frame,) = re.findall(
        r'<iframe sandbox="" [^<>]* srcdoc="([^"<>]*)"></iframe>', report._repr_html_()
    )

    assert report.to_html() == unescape(frame)
    assert to_frame(report.to_html()) == report._repr_html_()
