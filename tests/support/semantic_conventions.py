"""Tables of the semantic conventions, and spans and metrics beside them."""

from __future__ import annotations

from typing import Any, NamedTuple

from chains import chain, log_of, retrying

from aioretry_smithy import RequestLog, SessionBuilder

URL = "https://api.example.com/orders"


class Row(NamedTuple):
    """An attribute as the conventions describe it."""

    type: type
    level: str


def check(
    attributes: dict[str, Any],
    table: dict[str, Row],
    *,
    failed: bool,
    answered: bool,
    resent: bool = False,
) -> None:
    """Hold attributes against a table: names, types, levels of requirement."""
    conditions = {
        "required": True,
        "where it failed": failed,
        "where the method is _OTHER": attributes["http.request.method"] == "_OTHER",
        "where there is a response": answered,
        "where it was sent before": resent,
        "recommended, not made": False,
    }

    assert set() == set(attributes) - set(table)
    for name, row in table.items():
        if row.level in conditions:
            assert conditions[row.level] == (name in attributes), name
        if name in attributes:
            assert row.type is type(attributes[name]), name


def seconds(span) -> float:
    return (span.end_time - span.start_time) / 1e9


def traced(heard, answers, *inside, **settings) -> SessionBuilder:
    """Tracing in both places around a retrying client."""
    tracing = heard.decorator()
    return chain(answers, *inside, tracing, retrying(**settings), tracing)


async def get(builder, url=URL, **options) -> RequestLog:
    return await log_of(builder.build(), url, **options)
