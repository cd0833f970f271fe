"""Pictures of calls of every kind are valid documents of bounded width."""

from __future__ import annotations

import asyncio
from xml.etree import ElementTree as ET

from calls import begin_body, end, http, note_delay
from chains import in_virtual_time
from hypothesis import given
from hypothesis import strategies as st

from aioretry_smithy import new_response
from aioretry_smithy._log.timeline import timeline
from aioretry_smithy._log.timeline_svg import draw

TEXTS = st.text(st.characters(), max_size=200)
SECONDS = st.floats(0, 1e6) | st.sampled_from([0.0, 1e-9, 0.001, 3.0])
ATTEMPTS = st.lists(
    st.tuples(SECONDS, st.none() | st.integers(100, 999), TEXTS, st.none() | SECONDS),
    max_size=8,
)


async def log_of(url, limit, attempts):
    ctx = http(url, timeout=limit)
    for seconds, status, words, delay in attempts:
        attempt = ctx.derive(ctx.request)
        await asyncio.sleep(seconds)
        if status is None:
            end(attempt, ValueError(words))
        else:
            response = new_response(ctx.request, status)
            response.reason = words
            begin_body(attempt, response)
        if delay is not None:
            note_delay(attempt, delay, "backoff")
            await asyncio.sleep(delay)
    return ctx.log


def check(log):
    root = ET.fromstring(draw(log))
    times = timeline(log)

    for each in root.iter("{http://www.w3.org/2000/svg}rect"):
        x, length = float(each.get("x", 0)), float(each.get("width"))
        assert x >= 0
        assert x + length <= 900.2
    assert log.children == times.attempts
    for bar in times.bars:
        for span in bar.parts.values():
            assert 0.0 <= span.start <= span.end <= times.end


@given(url=TEXTS, limit=st.none() | SECONDS, attempts=ATTEMPTS)
def test_picture_is_a_document(url, limit, attempts):
    """With any texts and times it is XML, and no bar is outside."""
    check(in_virtual_time(log_of(f"http://h/{url}", limit, attempts)))
