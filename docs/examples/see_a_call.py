"""Two calls of a service that is in trouble: one succeeds, one runs out of time.

Prints their logs; ``--pictures DIRECTORY`` draws them as well, which needs rich.
"""

import argparse
import asyncio
import io
import re
from pathlib import Path

import aiohttp

from aioretry_smithy import (
    Backoff,
    ClientRequestContext,
    HttpRequest,
    RequestLog,
    RetryingClient,
    RetryStrategy,
    SessionBuilder,
)
from aioretry_smithy.testing import ScriptedAnswer, ScriptedTransport, VirtualTimeLoop

INDENTED = re.compile(
    r'x="([\d.]+)" y="([\d.]+)" textLength="([\d.]+)"([^>]*>)(&#160;)+'
)


def answer_after(seconds: float, status: int) -> ScriptedAnswer:
    async def answer(ctx: ClientRequestContext, request: HttpRequest) -> int:
        await asyncio.sleep(seconds)
        return status

    return answer


async def call(*answers: object) -> RequestLog:
    strategy = RetryStrategy.failsafe(Backoff.exponential(0.4))
    builder = (
        SessionBuilder("https://api.example.com")
        .decorator(ScriptedTransport(answers))
        .decorator(RetryingClient.new_decorator(strategy, attempt_timeout=3.0))
        .response_timeout(6.0)
    )
    async with builder.build() as session:
        try:
            async with session.get("/orders", params={"token": "S3CR3T"}) as response:
                return RequestLog.of(response)
        except aiohttp.ClientError as error:
            return RequestLog.of(error)


def draw_tree(log: RequestLog, file: Path) -> None:
    from rich.console import Console  # noqa: PLC0415

    console = Console(file=io.StringIO(), force_terminal=True, record=True, width=108)
    console.print(log)
    picture = console.export_svg(title="rich.print(log)", unique_id="tree")
    # Without the web font, which a browser would have to fetch.
    picture = re.sub(r"(?s)\s*@font-face \{.*?\}", "", picture)
    picture = re.sub(r"font-family: .*;", "font-family: monospace;", picture)
    file.write_text(INDENTED.sub(moved, picture), encoding="utf-8")


def moved(text: re.Match[str]) -> str:
    """Begin a text after its blanks, which some renderers drop."""
    x, y, length, rest, _ = text.groups()
    indent = 12.2 * text[0].count("&#160;")
    x, length = f"{float(x) + indent:.1f}", f"{float(length) - indent:.1f}"
    return f'x="{x}" y="{y}" textLength="{length}"{rest}'


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", metavar="DIRECTORY", type=Path, help="draw them")
    arguments = parser.parse_args()
    success = await call(
        answer_after(0.3, 503), answer_after(9.0, 200), answer_after(0.2, 200)
    )
    timeout = await call(answer_after(0.5, 502), *[answer_after(9.0, 200)] * 3)
    print(success.render(), timeout.render(), sep="\n\n")
    if arguments.pictures:
        draw_tree(success, arguments.pictures / "see-a-call-tree.svg")
        success.to_svg(arguments.pictures / "see-a-call.svg")
        timeout.to_svg(arguments.pictures / "see-a-call-deadline.svg")


with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
    runner.run(main())
