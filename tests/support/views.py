"""All texts in which a log may show a failure."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

from aioretry_smithy import LogFormatter, Report

if TYPE_CHECKING:
    from pathlib import Path

    from aioretry_smithy import RequestLog

_FORMATTERS = (
    LogFormatter.text(),
    LogFormatter.json(),
    LogFormatter.json(nested=True),
    LogFormatter.tree(),
)


def views_of(log: RequestLog, folder: Path) -> dict[str, str]:
    """Return what each view says of a call and of its attempts."""
    views = {"notes": "\n".join(getattr(log.response_cause, "__notes__", ()))}
    for number, each in enumerate((log, *log.children)):
        views |= {f"{name} {number}": text for name, text in _of(each, folder).items()}
    report = Report.of([log])
    return views | {
        "report": report.render(),
        "report.json": json.dumps(report.to_dict()),
        "report.html": report.to_html(),
    }


def _of(log: RequestLog, folder: Path) -> dict[str, str]:
    from rich.console import Console  # noqa: PLC0415 - needs the extra cli

    console = Console(file=io.StringIO(), width=4000)
    console.print(log)
    log.to_svg(folder / "call.svg")
    views = {
        "rich": console.file.getvalue(),  # type: ignore[attr-defined]
        "svg": (folder / "call.svg").read_text(encoding="utf-8"),
        "repr": repr(log),
        "tree": log.render(),
        "dict": json.dumps(log.to_dict()),
    }
    if log.request_method is not None:
        views |= {"har": json.dumps(log.to_har()), "curl": log.to_curl()}
    for each in _FORMATTERS:
        lines = each.format_request(log), each.format_response(log)
        views[repr(each)] = "\n".join(filter(None, lines))
    return views
