"""Tell what a log, a context or an exception shows."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from story_text import limit, settled

from aioretry_smithy import RequestLog, RpcRequest


def told_log(log: RequestLog) -> dict[str, Any]:
    """Tell what a log shows, in each of its views."""
    children = [*log.children]
    logs = [log, *children]
    return {
        "render": _view(log.render),
        "repr": _view(lambda: [repr(each) for each in logs]),
        "to_dict": _view(lambda: _settled_values(log.to_dict())),
        "attempts": [each.attempt for each in logs],
        "is one tree": log.parent is None
        and log.root is log
        and all(child.parent is log and child.root is log for child in children),
        "same children": all(map(operator.is_, children, log.children)),
        "requests": [_told_request(each.request) for each in logs],
        # A copy, as soon as the exception itself is gone.
        "causes": [
            (type(each.response_cause), settled(str(each.response_cause)))
            for each in logs
        ],
        "stop_reason": [each.stop_reason for each in logs],
        "times in order": _are_in_order(logs),
    }


def _view(view: Callable[[], Any]) -> Any:
    try:
        return settled(view())
    except Exception as error:
        # There are requests that no view was made for, such as a method of bytes.
        return repr(error)


def _told_request(request: Any) -> Any:
    if isinstance(request, RpcRequest):
        return request.name
    return request.method, sorted(request.arguments)


NOT_RECORDED = {"id", "is_success", "response_cause_type"}
"""Keys of a log that are not in stories."""


def _settled_values(values: dict[str, Any]) -> dict[str, Any]:
    values["response_timeout"] = limit(values["response_timeout"])
    for name in NOT_RECORDED:
        del values[name]
    for each in (*values["children"], *values.get("calls", ())):
        _settled_values(each)
    return values


def _are_in_order(logs: list[RequestLog]) -> bool | None:
    root, *children = logs
    if any(each.is_hedge for each in children):
        return None  # one that lost may take a while to end
    starts = [each.started for each in logs]
    lasted = [
        each.started + each.total_duration
        for each in children
        if each.total_duration is not None
    ]
    whole = root.total_duration
    return starts == sorted(starts) and (
        whole is None or all(end <= root.started + whole + 1e-6 for end in lasted)
    )


def told_error(error: BaseException | None) -> Any:
    """Tell what an exception says, with its notes and what it came from."""
    told = []
    while error is not None:
        told.append(
            {
                "class": type(error).__name__,
                "text": settled(str(error)),
                "args": settled(repr(error.args)),
                "notes": settled(getattr(error, "__notes__", [])),
                "suppressed": error.__suppress_context__,
                "cause": error.__cause__ is not None,
            }
        )
        error = error.__cause__ or error.__context__
    return told


def told_context(ctx: Any) -> dict[str, Any]:
    """Tell what one of the user's own parts can see of a call."""
    request, is_function = ctx.request, isinstance(ctx.request, RpcRequest)
    return {
        "attempt": ctx.attempt,
        "of": ctx.root.log.total_attempts,
        "is root": ctx.parent is None,
        "root": ctx.root is (ctx.parent or ctx),
        "log": (ctx.log.attempt, ctx.log.root is ctx.root.log),
        "status": (ctx.log.response_status, ctx.root.log.response_status),
        "response": settled(dict(ctx.log.response_headers or {})),
        "headers": [] if is_function else sorted(request.headers.items()),
        "request": settled(
            request.name if is_function else f"{request.method} {request.full_url()}"
        ),
        "attributes": dict(ctx.attributes),
        "remaining": limit(ctx.remaining()),
        "reason": ctx.root.log.stop_reason,
    }
