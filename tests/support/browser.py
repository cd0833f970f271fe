"""A headless browser that opens a page and tells what it says, asks for and shows."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import shutil
import sys
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import aiohttp

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
    caches = {
        "darwin": home / "Library/Caches",
        "win32": home / "AppData/Local",
    }
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
