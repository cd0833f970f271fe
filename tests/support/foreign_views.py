"""What others make of views: browsers, readers of HAR and SVG, foreign lines."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import re
import shutil
import sys
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path
from xml.etree import ElementTree as ET

import aiohttp
from hypothesis import strategies as st

SVG = "{http://www.w3.org/2000/svg}"


def elements(picture, name, kind=None):
    found = ET.fromstring(picture).iter(f"{SVG}{name}")
    return [each for each in found if kind in {None, each.get("class")}]


def texts(picture, kind=None):
    return [each.text for each in elements(picture, "text", kind)]


def bars(picture):
    """Return class, start and length of each bar, in pixels."""
    return [
        (each.get("class"), float(each.get("x")), float(each.get("width")))
        for each in elements(picture, "rect")
        if each.get("class") != "paper"
    ]


FIELDS = {
    "archive": "log:log",
    "log": "version:text creator:creator browser?:creator pages?:page* entries:entry*",
    "creator": "name:text version:text",
    "page": "startedDateTime:time id:text title:text pageTimings:pageTimings",
    "pageTimings": "onContentLoad?:optional onLoad?:optional",
    "entry": (
        "pageref?:text startedDateTime:time time:duration request:request"
        " response:response cache:cache timings:timings serverIPAddress?:text"
        " connection?:text"
    ),
    "request": (
        "method:text url:text httpVersion:text cookies:cookie* headers:pair*"
        " queryString:pair* postData?:postData headersSize:size bodySize:size"
    ),
    "response": (
        "status:status statusText:text httpVersion:text cookies:cookie* headers:pair*"
        " content:content redirectURL:text headersSize:size bodySize:size"
    ),
    "cookie": "name:text value:text",
    "pair": "name:text value:text",
    "postData": "mimeType:text text:text",
    "content": "size:size compression?:size mimeType:text text?:text encoding?:text",
    "cache": "",
    "timings": (
        "blocked?:optional dns?:optional connect?:optional send:duration wait:duration"
        " receive:duration ssl?:optional"
    ),
}
"""The fields of each object: ``?`` stands behind optional ones, ``*`` behind lists."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)


def check(archive):
    """Check an archive, a text or an object, and return its ``log``."""
    if isinstance(archive, str):
        archive = json.loads(archive, parse_constant=_fail)
    _check_object("archive", archive)
    log = archive["log"]
    assert "1.2" == log["version"]
    ids = [page["id"] for page in log["pages"]]
    assert len({*ids}) == len(ids)
    for entry in log["entries"]:
        assert entry["pageref"] in ids
        timings = entry["timings"].values()
        known = sum(time for time in timings if time != -1)
        assert round(known, 3) == round(entry["time"], 3)
    return log


def _check_object(kind, value):
    fields = dict(field.split(":") for field in FIELDS[kind].split())
    allowed = {name.rstrip("?") for name in fields} | {"comment"}
    assert {name for name in value if not name.startswith("_")} <= allowed, kind
    for name, what in fields.items():
        if name.rstrip("?") in value:
            _check(what, value[name.rstrip("?")])
        else:
            assert name.endswith("?"), f"{kind} without {name}"


def _check(what, value):
    if what.endswith("*"):
        assert isinstance(value, list)
        for each in value:
            _check(what[:-1], each)
    elif what in FIELDS:
        assert isinstance(value, dict)
        _check_object(what, value)
    else:
        assert _PLAIN[what](value), f"{value!r} is no {what}"


def _is_text(value):
    # Readers in other languages refuse lone surrogates.
    return isinstance(value, str) and bool(value.encode() or True)


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_time(value):
    return bool(_TIME.fullmatch(value) and datetime.fromisoformat(value))


_PLAIN = {
    "text": _is_text,
    "time": _is_time,
    "duration": lambda value: _is_number(value) and value >= 0,
    "optional": lambda value: _is_number(value) and (value >= 0 or value == -1),
    "size": lambda value: isinstance(value, int) and value >= -1,
    "status": lambda value: isinstance(value, int) and 0 <= value < 1000,
}


def _fail(constant):
    raise AssertionError(constant)


START = "2026-11-26T12:00:00.250000+00:00"

KEYS = (
    "id name request_method request_url request_headers request_content_preview"
    " request_started_at request_length request_duration sent_method sent_url endpoint"
    " sent injected response_timeout response_status response_reason response_headers"
    " response_cause response_cause_type response_length response_content_preview"
    " duration total_duration is_complete is_success connection attempt is_hedge"
    " superseded total_attempts delay delay_source stop_reason retry_error children"
    " calls dropped_calls type v sampling_rate"
).split()

TEXTS = st.text(st.characters(codec=None)) | st.sampled_from(
    [
        START,
        "9999-12-31T23:59:59-01:00",
        "2249-12-31",
        "\x1b[2J",
        "<script>",
        "\u202e",
        "http://u:p@[h/?a=%ff&b",
        "GET",
    ]
)
NUMBERS = st.integers() | st.floats() | st.sampled_from([10**400, -1, 200, 1e8, 0.5])
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=5,
)


def _lines(inside):
    known = {"request_started_at": st.just(START) | VALUES}
    lists = dict.fromkeys(["children", "calls"], st.lists(inside, max_size=3) | VALUES)
    return st.fixed_dictionaries(
        {}, optional={**dict.fromkeys(KEYS, VALUES), **lists, **known}
    )


LINES = _lines(_lines(VALUES))
"""Three levels of them."""


EXECUTABLE = "AIORETRY_SMITHY_TEST_BROWSER"
"""The environment variable that names the browser to take."""

NAMES = (
    *("chromium", "chromium-browser", "chromium-headless-shell"),
    *("google-chrome", "google-chrome-stable", "chrome", "microsoft-edge"),
)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
    *("--no-first-run", "--disable-background-networking", "--hide-scrollbars"),
    *("--disable-component-update", "--disable-sync", "--remote-debugging-port=0"),
    "--disable-dev-shm-usage",
)
STARTS_WITHIN = 60
"""Seconds, on a machine with much else to do."""


def find_browser():
    """Return a Chromium: that of the environment, of the path, or of Playwright."""
    if named := os.environ.get(EXECUTABLE):
        return named
    on_path = filter(None, map(shutil.which, NAMES))
    return next(on_path, None) or next(_of_playwright(), None)


def _of_playwright():
    home = Path.home()
    caches = {"darwin": home / "Library/Caches", "win32": home / "AppData/Local"}
    cache = caches.get(sys.platform, home / ".cache")
    for names in ("chrome", "headless_shell", "Chromium", "chrome.exe"):
        found = (cache / "ms-playwright").glob(f"chromium*/*/**/{names}")
        yield from (str(path) for path in found if path.is_file())


@dataclass
class Browser:
    """A browser, spoken to over its own protocol for developer tools."""

    socket: aiohttp.ClientWebSocketResponse
    numbers: count[int] = field(default_factory=count)
    events: list = field(default_factory=list)

    async def ask(self, method, session=None, /, **params):
        """Send a command, and return its result; what else is told is kept."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        await self.socket.send_json(message)
        while (told := await self._told()).get("id") != number:
            pass
        assert "error" not in told, (method, told)
        return told["result"]

    async def heard(self, method):
        """Wait until something is told."""
        while not any(event.get("method") == method for event in self.events):
            await self._told()

    async def _told(self):
        told = await self.socket.receive_json(timeout=STARTS_WITHIN)
        self.events.append(told)
        return told

    async def open(self, file, *, width, theme="light"):
        """Open a page that lies in a file.

        Args:
            file: The page.
            width: How many pixels the window is wide.
            theme: What the reader prefers: ``light`` or ``dark``.
        """
        target = await self.ask("Target.createTarget", url="about:blank")
        attached = await self.ask(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        page = Page(self, attached["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            await page.ask(f"{domain}.enable")
        feature = {"name": "prefers-color-scheme", "value": theme}
        await page.ask("Emulation.setEmulatedMedia", features=[feature])
        size = {"width": width, "height": 900}
        await page.ask(
            "Emulation.setDeviceMetricsOverride",
            **size,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.events.clear()
        await page.ask("Page.navigate", url=file.as_uri())
        await self.heard("Page.loadEventFired")
        return page


@dataclass
class Page:
    """A page that is open."""

    browser: Browser
    session: str

    async def ask(self, method, **params):
        """Send a command about this page."""
        return await self.browser.ask(method, self.session, **params)

    async def value(self, expression):
        """Return the value of an expression of JavaScript, as JSON has it."""
        answer = await self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def picture(self):
        """Return what the whole page looks like, as PNG."""
        answer = await self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(answer["data"])

    @property
    def complaints(self):
        """What the browser had to say so far, of errors and policies alike."""
        told = {"Log.entryAdded", "Runtime.exceptionThrown", "Audits.issueAdded"}
        told |= {"Runtime.consoleAPICalled"}
        events = self.browser.events
        return [json.dumps(each) for each in events if each.get("method") in told]

    @property
    def requests(self):
        """The addresses that were asked for, that of the page itself first."""
        return [
            event["params"]["request"]["url"]
            for event in self.browser.events
            if event.get("method") == "Network.requestWillBeSent"
        ]


@contextlib.asynccontextmanager
async def started(executable, profile):
    """Start a browser with an empty profile, and end it."""
    process = await asyncio.create_subprocess_exec(
        executable,
        *FLAGS,
        f"--user-data-dir={profile}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(STARTS_WITHIN):
            address = await _address(process.stderr)
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(address, max_msg_size=0) as socket,
        ):
            browser = Browser(socket)
            yield browser
            await browser.ask("Browser.close")
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def _address(errors):
    """Return where the browser listens, which is among what it complains of."""
    async for line in errors:
        start, _, address = line.decode().strip().partition("DevTools listening on ")
        if not start and address:
            return address
    raise AssertionError("the browser ended before it listened")
