"""The pages as Sphinx builds them, in a real browser where there is one."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from foreign_views import EXECUTABLE, find_browser, started

for module in "sphinx", "furo", "sphinx_copybutton", "sphinxext.opengraph":
    pytest.importorskip(module, reason="needs the group docs")

DOCS = Path(__file__).parents[2] / "docs"
BUILT = "AIORETRY_SMITHY_TEST_PAGES"
"""The environment variable that names a folder with built pages."""

FOUND = """
(() => {
  const first = query => Search._performSearch(...Search._parseQuery(query)).at(-1);
  return QUERIES.map(query => [query, first(query)?.[0]]);
})()
"""
"""Each query with the page that the search shows first, by Sphinx's own script."""

OVERFLOW = "document.documentElement.scrollWidth - window.innerWidth"
TOO_WIDE = """
[...document.querySelectorAll("article table")]
  .filter(table => table.scrollWidth > table.parentElement.clientWidth)
  .map(table => table.textContent.trim().slice(0, 40))
"""
CUT = """
[...document.querySelectorAll("article pre")]
  .filter(code => code.scrollWidth > code.clientWidth)
  .map(code => code.textContent.slice(0, 40))
"""
SHADOW = """
getComputedStyle(document.querySelector("article pre")).backgroundAttachment
"""
UNDERLINE = """
getComputedStyle(document.querySelector("article .nn")).textDecorationLine
"""
NAVIGATION = """
[...document.querySelectorAll(".sidebar-tree a")]
  .filter(link => link.checkVisibility())
  .map(link => link.textContent)
"""
SCHEME = """
getComputedStyle(document.querySelector("article img")).colorScheme
"""
PLOT = 'getComputedStyle(document.querySelector("img.plot")).filter'
CHOOSE = "document.body.dataset.theme = 'THEME'"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The folder of the built pages."""
    if built := os.environ.get(BUILT):
        return Path(built)
    folder = tmp_path_factory.mktemp("html")
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", DOCS, folder]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture
async def browser(tmp_path):
    """A headless Chromium."""
    executable = find_browser()
    if executable is None:
        pytest.skip(f"no Chromium is installed, and {EXECUTABLE} names none")
    async with started(executable, tmp_path / "profile") as browser:
        yield browser


def written(pages):
    """Return the built pages that somebody wrote, each with its text."""
    files = (pages / file.relative_to(DOCS) for file in DOCS.rglob("*.rst"))
    found = (file.with_suffix(".html") for file in files)
    return {file: file.read_text(encoding="utf-8") for file in found if file.exists()}


async def test_search_shows_the_right_page_first(browser, pages):
    """Words of somebody in trouble, numbers among them, lead where it is mended."""
    right = {
        "429": "faq",
        "503": "reference/retry",
        "ListRetry": "coming-from/aiohttp-retry",
        "SSE": "howto/stream-an-answer",
        "circuit": "howto/use-a-circuit-breaker",
        "client_session_type": "howto/use-with-other-libraries",
        "crawl": "howto/fetch-many-urls",
        "current_attempt": "coming-from/aiohttp-retry",
        "existing session": "howto/use-with-other-libraries",
        "factory": "howto/use-with-other-libraries",
        "failover": "howto/call-several-servers",
        "given session": "howto/use-a-session-that-is-given",
        "hidden resend": "coming-from/tenacity-around-aiohttp",
        "log": "howto/log-calls",
        "loop": "coming-from/a-loop-of-your-own",
        "max_time": "coming-from/backoff",
        "migrate": "howto/keep-your-tests-when-you-migrate",
        "mock": "howto/keep-your-tests-when-you-migrate",
        "on_backoff": "coming-from/backoff",
        "rate limit": "reference/limits",
        "retry": "reference/retry",
        "retryAfterSeconds": "howto/write-a-strategy",
        "retry_options": "coming-from/aiohttp-retry",
        "slow": "howto/find-out-why-calls-are-slow",
        "stop_after_delay": "howto/limit-time",
        "timeout": "howto/limit-time",
        "web service": "howto/use-in-a-web-service",
    }

    opened = await browser.open(pages / "search.html", width=1440)
    found = await opened.value(FOUND.replace("QUERIES", json.dumps(list(right))))

    assert right == dict(found)


@pytest.mark.parametrize(
    "page", ["index", "tutorial", "reference/retry", "howto/see-a-call", "genindex"]
)
@pytest.mark.parametrize("width", [390, 1080, 1320, 1440])
async def test_page_fits_the_window(browser, pages, page, width):
    """On a desk and on a phone: the page, and its tables of up to four columns."""
    opened = await browser.open(pages / f"{page}.html", width=width)

    assert await opened.value(OVERFLOW) <= 0
    assert [] == await opened.value(TOO_WIDE)


async def test_code_that_goes_on_beyond_the_edge_says_so(browser, pages):
    """By a shadow, which lies below a cover at the end of the code."""
    page = pages / "howto" / "write-a-decorator.html"
    opened = await browser.open(page, width=1280)

    assert await opened.value(CUT)
    assert "scroll" in await opened.value(SHADOW)


async def test_names_in_code_are_no_links(browser, pages):
    """Links are underlined; names of modules are not, in the dark either."""
    opened = await browser.open(pages / "index.html", width=1280, theme="dark")

    assert "none" == await opened.value(UNDERLINE)


@pytest.mark.parametrize("width", [390, 1280])
async def test_code_of_the_front_page_is_not_cut(browser, pages, width):
    """What a newcomer sees first is seen whole, also on a phone."""
    opened = await browser.open(pages / "index.html", width=width)

    assert [] == await opened.value(CUT)


async def test_navigation_is_taken_in_at_a_glance(browser, pages):
    """Of a hundred pages it names those of the group alone that is open."""
    opened = await browser.open(pages / "howto/limit-retries.html", width=1440)

    names = await opened.value(NAVIGATION)
    assert "Limit retries" in names
    assert "How to retry" in names
    assert "Retry safely" not in names
    assert len(names) < 25


async def test_pictures_follow_the_toggle(browser, pages):
    """Whatever the system prefers: the page's theme is that of pictures and plots."""
    opened = await browser.open(pages / "explanation/hedging.html", width=1440)

    seen = []
    for theme in "light", "dark":
        await opened.value(CHOOSE.replace("THEME", theme))
        seen.append((await opened.value(SCHEME), await opened.value(PLOT)))

    assert ("light", "none") == seen[0]
    assert ("dark", "invert(0.93) hue-rotate(180deg)") == seen[1]


def test_copied_code_has_no_prompt(pages):
    """The button is told which beginnings of lines are prompts."""
    script = (pages / "_static" / "copybutton.js").read_text(encoding="utf-8")

    assert r"'>>> |\\.\\.\\. ?|\\$ ', true" in script


def test_code_ends_with_its_last_line(pages):
    """Blank lines that a file has before what follows are not shown."""
    for file, text in written(pages).items():
        assert [] == re.findall(r".*\n\s*\n</pre>", text), file


def test_every_page_describes_itself(pages):
    """To search engines, and to who shows a link to it."""
    for file, text in written(pages).items():
        for tag in 'name="description"', 'property="og:description"':
            assert re.search(rf'<meta (?=[^>]*{tag})[^>]*content="[^"]', text), (
                file,
                tag,
            )


def test_signatures_say_what_a_default_is(pages):
    """No factory, no function's name in brackets, and no address in memory."""
    for file, text in written(pages).items():
        defaults = re.findall(r'class="default_value">(.*?)</em>', text, re.DOTALL)
        assert [] == [each for each in defaults if "&lt;" in each], file
        assert [] == re.findall(r"\bat 0x[0-9a-f]{6,}", text), file


def test_long_signatures_have_a_line_for_each_parameter(pages):
    """The words for "not given" are left to the default."""
    text = (pages / "reference" / "session.html").read_text(encoding="utf-8")
    (signature,) = re.findall(
        r'<dt[^>]*id="aioretry_smithy.SessionBuilder.standard">.*?</dt>',
        text,
        re.DOTALL,
    )

    assert 10 < signature.count("<dd>")
    assert "Unset" not in signature
