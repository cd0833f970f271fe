"""The report as a page."""

from __future__ import annotations

import dataclasses
import re
from html import unescape
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_answers import failed, group, line, made_answers, moment

from aioretry_smithy._report import answers as kinds
from aioretry_smithy._report.answers import retries_in_words
from aioretry_smithy._report.document import Table, blocks

pytest.importorskip("jinja2", reason="needs the extra cli")

from aioretry_smithy._report.page import legible_text, to_frame, to_html

XHTML = "{http://www.w3.org/1999/xhtml}"
OURS = {"by", "part", "started_at", "ended_at", "request_started_at", "type"}
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
    if isinstance(value, list | tuple):
        return type(value)(with_texts(each, text, key) for each in value)
    if isinstance(value, dict):
        hostile = key in {"stop_reasons", "skipped", "request_headers"}
        return {
            text if hostile else name: with_texts(each, text, name)
            for name, each in value.items()
        }
    if dataclasses.is_dataclass(value):
        return type(value)(
            **{
                field.name: with_texts(getattr(value, field.name), text, field.name)
                for field in dataclasses.fields(value)
            }
        )
    return value


def test_figures_are_those_of_the_answers():
    """The first screen says how it went, and why the slow calls were slow."""
    answers = made_answers()
    page = said(parsed(answers))

    assert "20,000 calls" in page
    assert "99.98 % 93.05 % without retries" in page
    assert retries_in_words(answers.summary)[1:] in page
    assert "42 % of their time in waits for Retry-After" in page
    assert "1.074 1.000 without retries" in page
    assert "max_total_attempts 503 3" in page
    assert "shop:8080 503 1,204 1,204" in page
    assert "14 others" in page


def test_figures_are_those_of_the_text():
    """Whatever stands in a table of the text stands on the page, written alike."""
    summary = dataclasses.replace(made_answers().summary, hedges=140, resends=7)
    answers = made_answers(summary=summary)
    page = said(parsed(answers))

    tables = [block for block in blocks(answers) if isinstance(block, Table)]
    cells = {cell for table in tables for row in table.rows[1:] for cell in row}

    assert 5 == len(tables)
    assert {} == {cell: page for cell in cells if cell not in page}


def test_a_page_is_complete_in_itself():
    """It has no script, asks for nothing, and its policy would allow neither."""
    page = parsed(made_answers())
    policy = page.find(f".//{XHTML}meta[@http-equiv='Content-Security-Policy']")
    links = [each.get("href") for each in page.iter() if each.get("href")]

    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" == policy.get(
        "content"
    )
    assert not {f"{XHTML}{name}" for name in ("script", "link", "iframe", "img")} & {
        *tags(page)
    }
    assert [] == links
    assert not [
        name
        for each in page.iter()
        for name in each.attrib
        if name.startswith("on") or name in {"src", "action", "srcset"}
    ]
    assert "url(" not in to_html(made_answers())
    assert "@import" not in to_html(made_answers())


def test_a_report_without_trouble_says_so():
    """Nothing failed, nothing ended badly, and there is no hint."""
    calm = made_answers(endings=(), failures=(), hints=())

    page = said(parsed(calm))

    assert "Why did calls end badly? None did." in page
    assert "What failed? No attempt did." in page
    assert "What to look at" not in page
    assert "hint" not in page


def test_warnings_stand_at_the_top():
    """What a reader of the numbers must know comes before them."""
    answers = made_answers()
    told = dataclasses.replace(answers.input, warnings=("calls.gz ends early",))

    page = said(parsed(dataclasses.replace(answers, input=told)))

    assert page.index("calls.gz ends early") < page.index("How did it go?")


def test_steps_are_said():
    """The page says how long one is."""
    answers = made_answers()
    longer = dataclasses.replace(answers.timeline, step=120, said="2 minutes a step")

    assert "2 minutes a step" in said(parsed(made_answers(timeline=longer)))


def test_a_report_may_have_no_moments():
    """Nobody knows when the calls were: there is no picture of it."""
    nothing = kinds.CallsByTime(60, "by the minute", ())

    assert "in numbers" not in said(parsed(made_answers(timeline=nothing)))


def test_numbers_of_a_single_moment_are_open():
    """There is no picture of it, so its numbers are seen at once."""
    one = kinds.CallsByTime(60, "by the minute", (moment(0),))

    page = parsed(made_answers(timeline=one))
    section = page.find(f".//{XHTML}section[@id='timeline']")

    assert "" == section.find(f".//{XHTML}details").get("open")


def test_an_ending_may_have_no_example():
    """An ending without an example has a row all the same."""
    ending = kinds.Ending(None, "503", 3, None)

    page = said(parsed(made_answers(endings=(ending,))))

    assert "- 503 3" in page
    assert "one of them" not in page


def test_more_reasons_than_anybody_reads_are_counted():
    """A group shows its most frequent reasons."""
    reasons = {f"reason{number}": 9.0 - number for number in range(9)}

    page = said(parsed(made_answers(groups=(group("/", stop_reasons=reasons),))))

    assert "reason3 6 and 5 more" in page
    assert "reason4" not in page


def test_a_long_tree_is_cut():
    """Of a call with very many attempts, the beginning is shown."""
    attempts = [dict(line()["children"][0], attempt=n) for n in range(1, 301)]

    page = said(parsed(made_answers(endings=(ending_of(line(*attempts)),))))

    assert "… 201 more lines" in page


def ending_of(example):
    return kinds.Ending("deadline", "503", 1, example)


@pytest.mark.parametrize("text", [HOSTILE, "\u05d0\u0301" * 20, "]]>", "\x7f\x85\n"])
def test_hostile_texts_change_no_markup(text):
    """Whatever a line says, the elements are the same, and nothing is raw."""
    page = to_html(with_texts(made_answers(), text))

    assert tags(ET.fromstring(page)) == tags(parsed(with_texts(made_answers(), "x")))
    assert page.encode().decode() == page
    assert not re.search(r"[^\n\x20-\x7e\xa0-\U0010ffff]", page)
    assert "\u202e" not in page
    assert "<script" not in page


@given(text=st.text(st.characters(), max_size=60))
def test_any_text_is_well_formed_and_legible(text):
    """Every text is shown with all its characters, none of which acts."""
    page = to_html(with_texts(made_answers(), text))

    ET.fromstring(page)
    shown = page.replace("\n", " ")

    assert page.encode().decode() == page
    assert shown.isprintable()
    assert legible_text(text) in unescape(page)


def test_what_nobody_reads_to_the_end_is_counted():
    """A page has the first twenty of hints, remarks and files, and says so."""
    answers = made_answers()
    read = dataclasses.replace(
        answers.input, sources=("calls.jsonl",) * 30, warnings=("odd",) * 50
    )
    page = said(parsed(made_answers(input=read, hints=answers.hints * 25)))

    for left_out in ("5 more hints", "31 more remarks", "10 more files"):
        assert f"{left_out} left out" in page


def test_hints_come_first():
    """What to change is read before the numbers that say why."""
    page = said(parsed(made_answers()))

    assert page.index("What to look at") < page.index("How did it go?")


def test_heads_of_columns_stand_once():
    """No two columns of a table have the same."""
    for table in parsed(made_answers()).iter(f"{XHTML}table"):
        heads = ["".join(each.itertext()) for each in table.find(f"{XHTML}thead")[0]]
        assert len(heads) == len({*heads})


def test_a_tree_is_written_once():
    """One that is an example of an ending is a picture alone among the slowest."""
    endings = (ending_of(failed()),)
    page = parsed(made_answers(endings=endings))
    section = page.find(f".//{XHTML}section[@id='examples']")

    assert 2 == len(section.findall(f".//{XHTML}figure"))
    assert 1 == len(section.findall(f".//{XHTML}pre"))


def test_a_call_is_drawn_once():
    """One of the slowest that has the most attempts, too, is not shown again."""
    examples = kinds.Examples((line(), failed()), (failed(), line(id="another")))

    page = parsed(made_answers(examples=examples))
    section = page.find(f".//{XHTML}section[@id='examples']")

    assert 3 == len(section.findall(f".//{XHTML}figure"))
    assert "Among the slowest, above: 1 more." in said(section)


def test_a_frame_leaves_the_page_around_it_alone():
    """A notebook gets the page in a frame that may do nothing."""
    page = to_html(made_answers())

    (frame,) = re.findall(
        r'<iframe sandbox="" [^<>]* srcdoc="([^"<>]*)"></iframe>', to_frame(page)
    )

    assert page == unescape(frame)
