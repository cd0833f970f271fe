"""Answers for tests of hostile input, and all texts that show what comes of them."""

import io
import json

from chains import retrying

from aioretry_smithy import (
    Backoff,
    LogFormatter,
    LoggingClient,
    Report,
    RetryStrategy,
    SessionBuilder,
)


def answer(status, *headers):
    line = status if isinstance(status, bytes) else status.encode()
    return b"\r\n".join([b"HTTP/1.1 " + line, *headers, b"Content-Length: 0", b"", b""])


def chain(formatter=None, **arguments):
    """Two attempts without a wait, each with its two lines."""
    strategy = RetryStrategy.failsafe(Backoff.without_delay())
    return (
        SessionBuilder(**arguments)
        .decorator(
            LoggingClient.new_decorator(formatter=formatter, sensitive_headers=["X-Me"])
        )
        .decorator(retrying(strategy, max_total_attempts=2, max_retry_after=0.9))
        .response_timeout(20.0)
    )


async def outcome_of(builder, url, **options):
    """Return what a caller sees of a response, or the class of what was raised."""
    method = options.pop("method", "GET")
    async with builder.build() as session:
        try:
            async with session.request(method, url, **options) as response:
                body = await response.read()
                return response.status, response.reason, response.headers, body
        except Exception as error:
            return type(error)


def assert_is_one_line_per_entry(log):
    """A view has as many lines as entries, and no character that moves a cursor."""
    lines = log.render().split("\n")

    assert 1 + len(log.children) == len(lines)
    assert all(line.isprintable() for line in [*lines, repr(log)])
    assert log.to_dict() == json.loads(json.dumps(log.to_dict()))


_FORMATTERS = (
    LogFormatter.text(),
    LogFormatter.json(),
    LogFormatter.json(nested=True),
    LogFormatter.tree(),
)


def views_of(log, folder):
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


def _of(log, folder):
    from rich.console import Console  # noqa: PLC0415 - needs the extra cli

    console = Console(file=io.StringIO(), width=4000)
    console.print(log)
    log.to_svg(folder / "call.svg")
    views = {
        "rich": console.file.getvalue(),
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
