"""Reports of real calls: hints, many lines, and the page in a browser."""

import asyncio
import itertools
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from chains import retrying
from counted_again import made_lines
from foreign_views import EXECUTABLE, find_browser, started
from made_lines import counted, keeping, troubles

from aioretry_smithy import RetryStrategy
from aioretry_smithy._report.page import to_frame, to_html


@pytest.fixture
def kept(tmp_path):
    """The calls of a test, of which a report is made."""
    with keeping(tmp_path) as calls:
        yield calls


@pytest.fixture
async def url(aiohttp_server):
    """A server that takes its time."""
    asked = itertools.count()

    async def answer(request):
        head, body, hang = (
            float(request.query.get(key, 0)) for key in ("head", "body", "hang")
        )
        if hang and next(asked) % 2:
            body = hang
        await asyncio.sleep(head)
        response = web.StreamResponse(headers={"Content-Length": "4"})
        await response.prepare(request)
        await response.write(b"or")
        await asyncio.sleep(body)
        await response.write(b"se")
        return response

    app = web.Application()
    app.router.add_get("/", answer)
    return (await aiohttp_server(app)).make_url("/")


async def test_a_pool_that_is_too_small(kept, url):
    """Most requests waited for its one connection."""
    connector = aiohttp.TCPConnector(limit=1)
    await kept.make(
        None, url=url.with_query(head=0.02), calls=24, at_once=8, connector=connector
    )
    hint = kept.hints()["pool_too_small"]

    assert hint["figures"]["slowest_share"] > 0.5
    assert 17 <= hint["figures"]["queued"] <= 24
    assert "TCPConnector(limit=" in hint["setting"]


@pytest.mark.parametrize(("at_once", "patience"), [(1, None), (8, 0.05)])
async def test_a_pool_that_is_large_enough(kept, url, at_once, patience):
    """No request waits for it; or callers gave up those that did."""
    connector = aiohttp.TCPConnector(limit=1)
    seconds = 0.02 if patience is None else 0.2
    await kept.make(
        None, url=url.with_query(head=seconds), calls=24, at_once=at_once,
        patience=patience, connector=connector,
    )  # fmt: skip

    assert {} == kept.hints()


@pytest.mark.slow
async def test_bodies_that_came_just_in_time(kept, url):
    """The timeout of an attempt covers them, too."""
    chain = retrying(RetryStrategy.never(), attempt_timeout=2.5)
    # In the last fifth of the time, with as much left as a busy machine may take.
    url = url.with_query(body=2.05, hang=9.0)
    await kept.make(None, chain, url=url, calls=10, at_once=10)
    (hint,) = kept.hints().values()

    assert "attempt_timeout_too_short" == hint["hint"]
    assert 5 == hint["figures"]["timeouts"] == hint["figures"]["near"]


LINES = 100_000
MADE = 2500
STATUS = Path("/proc/self/status")
PROGRAM = r"""
import re, sys, time
from pathlib import Path
from aioretry_smithy.__main__ import main
assert 0 == main(["report", sys.argv[1], "--json"])
used = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
print(time.process_time(), int(used[1]) >> 10, file=sys.stderr)
"""


@pytest.mark.long
@pytest.mark.release
@pytest.mark.skipif(not STATUS.exists(), reason="needs /proc")
def test_a_hundred_thousand_lines(tmp_path):
    """They are counted within 20 seconds of a processor and 150 MB."""
    calls = tmp_path / "calls.jsonl"
    lines = made_lines(MADE)
    made = "".join(f"{line.rstrip()}\n" for line in lines)
    calls.write_text(made * (LINES // len(lines)))

    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(calls)],
        check=True,
        capture_output=True,
        text=True,
    )

    seconds, megabytes = map(float, ran.stderr.split()[-2:])
    assert seconds < 20
    assert megabytes < 150


LEGIBLE = 4.5
"""The contrast that WCAG asks of text, at level AA."""

SMALLEST = 9
"""Pixels of text at least, pictures included."""

FAINT_OR_SMALL = f"""
(() => {{
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = colour => {{
    const [r, g, b] = numbers(colour).map(value => value / 255).map(value =>
      value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }};
  const paper = element => {{
    for (; element; element = element.parentElement) {{
      const colour = getComputedStyle(element).backgroundColor;
      if (numbers(colour)[3] !== 0) return colour;
    }}
  }};
  const found = [], walker = document.createTreeWalker(document.body, 4);
  while (walker.nextNode()) {{
    const text = walker.currentNode.textContent.trim();
    const element = walker.currentNode.parentElement;
    if (!text || ["title", "desc", "style"].includes(element.localName)) continue;
    const style = getComputedStyle(element), drawn = element.localName === "text";
    const levels = [drawn ? style.fill : style.color, paper(element)].map(light);
    const [high, low] = levels.sort((a, b) => b - a);
    const contrast = (high + 0.05) / (low + 0.05);
    const scale = drawn ? element.getScreenCTM().a : 1;
    const size = parseFloat(style.fontSize) * scale;
    if (contrast < {LEGIBLE} || size < {SMALLEST})
      found.push([text, contrast, size]);
  }}
  return found;
}})()
"""
OVERFLOW = "document.documentElement.scrollWidth - window.innerWidth"
OPEN_ALL = "document.querySelectorAll('details').forEach(each => each.open = true)"
HOSTILE = (
    "<script>alert(1)</script><img src='http://127.0.0.1:9/' onerror='alert(2)'>"
    '"><svg onload="alert(3)">\u202e</style></svg><iframe src="http://127.0.0.1:9/">'
)


@pytest.fixture
async def browser(tmp_path):
    """A headless Chromium."""
    executable = find_browser()
    if executable is None:
        pytest.skip(f"no Chromium is installed, and {EXECUTABLE} names none")
    async with started(executable, tmp_path / "profile") as browser:
        yield browser


@pytest.fixture
def page(tmp_path):
    """A function that writes a page to a file, and returns that."""

    def write(html):
        file = tmp_path / "report.html"
        file.write_text(html, encoding="utf-8", newline="\n")
        return file

    return write


LONG = {"request_url": f"http://shop:8080/{'a' * 300}", "stop_reason": "r" * 200}
"""What leaves no place to break a line."""


@pytest.mark.slow
@pytest.mark.parametrize("values", [{}, LONG], ids=["usual", "long"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1200])
async def test_page_is_legible_and_quiet(browser, page, values, theme, width):
    """It asks for nothing, has no complaint, and fits; day, night, desk and phone."""
    file = page(to_html(counted(troubles(**values))))

    opened = await browser.open(file, width=width, theme=theme)
    await opened.value(OPEN_ALL)

    assert await opened.value(OVERFLOW) <= 0
    assert [] == await opened.value(FAINT_OR_SMALL)
    assert [file.as_uri()] == opened.requests
    assert [] == opened.complaints


@pytest.mark.slow
async def test_colours_go_by_what_the_reader_prefers(browser, page):
    """The page and its pictures are dark where the reader wants that."""
    file = page(to_html(counted(troubles())))
    paper = (
        "[getComputedStyle(document.body).backgroundColor,"
        " getComputedStyle(document.querySelectorAll('rect.paper')[1]).fill]"
    )

    light = await (await browser.open(file, width=800)).value(paper)
    dark = await (await browser.open(file, width=800, theme="dark")).value(paper)

    assert ["rgb(255, 255, 255)"] * 2 == light
    assert ["rgb(18, 18, 18)", "rgb(13, 17, 23)"] == dark


@pytest.mark.slow
async def test_hostile_lines_do_nothing(browser, page):
    """What a line brings is text: no element, no request, not even a complaint."""
    names = "request_url", "stop_reason", "endpoint", "name", "response_reason"
    hostile = troubles(**dict.fromkeys(names, HOSTILE))
    file = page(to_html(counted(hostile)))

    opened = await browser.open(file, width=800)

    assert 0 == await opened.value(
        "document.querySelectorAll('script, img, iframe, [onload]').length"
    )
    assert "<script>alert(1)" in await opened.value("document.body.innerText")
    assert [file.as_uri()] == opened.requests
    assert [] == opened.complaints


@pytest.mark.slow
async def test_a_notebook_shows_it_in_a_frame(browser, page):
    """The frame is legible, and its policy finds nothing to complain of."""
    frame = to_frame(to_html(counted(troubles())))
    html = f"<!DOCTYPE html><title>notebook</title>{frame}"

    opened = await browser.open(page(html), width=800)

    assert 1 == await opened.value("window.frames.length")
    assert [] == opened.complaints


@pytest.mark.slow
async def test_trouble_would_be_seen(browser, page):
    """A page with a script, an image from elsewhere and faint small text is caught."""
    policy = to_html(counted(troubles())).partition("<title>")[0]
    faint = '<p style="color:#bbb">faint</p><svg><text font-size="5">tiny</text></svg>'
    html = (
        f"{policy}<title>x</title></head><body style='background:white'>{faint}"
        "<script>alert(1)</script>"
        '<p style="width:900px">wide</p><img src="http://127.0.0.1:9/x.png" /></body>'
    )

    opened = await browser.open(page(html), width=400)

    assert ["faint", "tiny"] == [
        text for text, *_ in await opened.value(FAINT_OR_SMALL)
    ]
    assert await opened.value(OVERFLOW) > 0
    assert "http://127.0.0.1:9/x.png" in opened.requests
    assert any("inline script" in each for each in opened.complaints)
    assert any("Loading the image" in each for each in opened.complaints)
