"""The report's page, opened in a real browser where there is one."""

import dataclasses

import pytest
from browser import EXECUTABLE, find_browser, started
from made_answers import failed, group, line, made_answers

from aioretry_smithy._report.answers import Examples
from aioretry_smithy._report.page import to_frame, to_html

pytestmark = pytest.mark.slow

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


def long_answers():
    """Answers with keys and reasons that leave no place to break a line."""
    long = "shop:8080/" + "a" * 300
    return made_answers(
        groups=(group(long, stop_reasons={"r" * 200: 1}), group("/")),
        examples=Examples((line(), line(request_url=f"http://{long}")), (failed(),)),
    )


@pytest.mark.parametrize("answers", [made_answers, long_answers])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1200])
async def test_page_is_legible_and_quiet(browser, page, answers, theme, width):
    """It asks for nothing, has no complaint, and fits; day, night, desk and phone."""
    file = page(to_html(answers()))

    opened = await browser.open(file, width=width, theme=theme)
    await opened.value(OPEN_ALL)

    assert await opened.value(OVERFLOW) <= 0
    assert [] == await opened.value(FAINT_OR_SMALL)
    assert [file.as_uri()] == opened.requests
    assert [] == opened.complaints


async def test_colours_go_by_what_the_reader_prefers(browser, page):
    """The page and its pictures are dark where the reader wants that."""
    file = page(to_html(made_answers()))
    paper = (
        "[getComputedStyle(document.body).backgroundColor,"
        " getComputedStyle(document.querySelectorAll('rect.paper')[1]).fill]"
    )

    light = await (await browser.open(file, width=800)).value(paper)
    dark = await (await browser.open(file, width=800, theme="dark")).value(paper)

    assert ["rgb(255, 255, 255)"] * 2 == light
    assert ["rgb(18, 18, 18)", "rgb(13, 17, 23)"] == dark


async def test_hostile_lines_do_nothing(browser, page):
    """What a line brings is text: no element, no request, not even a complaint."""
    answers = made_answers()
    hostile = made_answers(
        groups=(group(HOSTILE, stop_reasons={HOSTILE: 1}),),
        time=dataclasses.replace(answers.time, said=HOSTILE),
        examples=Examples((line(request_url=HOSTILE, stop_reason=HOSTILE),), ()),
    )
    file = page(to_html(hostile))

    opened = await browser.open(file, width=800)

    assert 0 == await opened.value(
        "document.querySelectorAll('script, img, iframe, [onload]').length"
    )
    assert "<script>alert(1)" in await opened.value("document.body.innerText")
    assert [file.as_uri()] == opened.requests
    assert [] == opened.complaints


async def test_a_notebook_shows_it_in_a_frame(browser, page):
    """The frame is legible, and its policy finds nothing to complain of."""
    html = f"<!DOCTYPE html><title>notebook</title>{to_frame(to_html(made_answers()))}"

    opened = await browser.open(page(html), width=800)

    assert 1 == await opened.value("window.frames.length")
    assert [] == opened.complaints


async def test_trouble_would_be_seen(browser, page):
    """A page with a script, an image from elsewhere and faint small text is caught."""
    policy = to_html(made_answers()).partition("<title>")[0]
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
