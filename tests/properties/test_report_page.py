"""Whatever stands in lines, the page of their report is well-formed and small."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from made_answers import attempt, line

from aioretry_smithy import Report
from aioretry_smithy._report.reading import Reading
from aioretry_smithy._report.selection import KEYS, Selection

KNOWN = [
    *sorted({*line(), *attempt(1, 0.0, 1.0)}),
    *("calls", "connection", "delay", "delay_source", "endpoint", "is_success"),
    *("response_cause", "response_cause_type", "retry_error", "sampled"),
    *("sampling_rate", "stop_reason", "superseded"),
]
TEXTS = st.text(st.characters(), max_size=20) | st.sampled_from(
    [
        *("</style><script>", "\u202e", "\ud800", "\x00", "Error: x", "a: b: c"),
        *("2026-11-26T12:00:00+00:00", "0001-01-01T00:00:00", "9999-12-31T23:59:59"),
        *("http://[", "http://x:y@h/%00", "//", "stale_connection", "rate_limit"),
        *(
            "ClientConnectorError: \x1b[2J",
            "ClientResponseError: 503, message='', url=''",
        ),
    ]
)
NUMBERS = st.sampled_from([0, -1, 1, 1e-300, 1e300, -1e300, 2**63, 10**400, 0.5, 503])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.floats() | TEXTS,
    lambda inside: (
        st.lists(inside, max_size=2)
        | st.dictionaries(st.sampled_from(KNOWN) | TEXTS, inside, max_size=3)
    ),
    max_leaves=8,
)
CHANGES = st.dictionaries(st.sampled_from(KNOWN), VALUES, max_size=6)


@st.composite
def lines(draw):
    """Make a line as it should be, of which anything may be something else."""
    call = line() | draw(CHANGES)
    children = call["children"]
    if isinstance(children, list) and children and isinstance(children[0], dict):
        call["children"] = [children[0] | draw(CHANGES), *children[1:]]
    if draw(st.booleans()):
        call["calls"] = [line() | draw(CHANGES)]
    return json.dumps(call).encode()


@given(read=st.lists(lines(), min_size=1, max_size=3), by=st.sampled_from(KEYS))
def test_any_line_gives_a_page_and_a_text(read, by):
    """No value of a line breaks a view, in any of the groupings."""
    reading = Reading(by, 10, Selection())
    reading.note_lines_inside(read)
    reading.add_lines(read)
    report = Report(reading.answers())

    page = report.to_html()

    assert len(page.encode()) < 300_000
    assert not {"script", "img"} & {tag(each) for each in ET.fromstring(page).iter()}
    assert report.render().replace("\n", "").isprintable()


def tag(element):
    return element.tag.rpartition("}")[2]
