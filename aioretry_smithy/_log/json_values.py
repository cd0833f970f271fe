"""A log as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .error_text import describe_cause, describe_error
from .tree import content_preview

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._masking.mask import Mask
    from .facts import LogFacts


def to_dict(log: LogFacts) -> dict[str, Any]:
    """Return a log and its attempts as plain JSON values."""
    mask = log.mask
    return {
        "name": mask.text(log.name),
        "request_method": _text(log.request_method, mask),
        "request_url": _text(log.request_url, mask),
        "request_headers": _headers(log.request_headers, mask),
        "request_content_preview": content_preview(log.request_content_preview, mask),
        "request_started_at": log.request_started_at.isoformat(),
        "request_length": log.request_length,
        "request_duration": log.request_duration,
        "sent": log.sent,
        "injected": log.injected,
        "response_timeout": log.response_timeout,
        "response_status": log.response_status,
        "response_reason": _text(log.response_reason, mask),
        "response_headers": _headers(log.response_headers, mask),
        "response_cause": describe_cause(log),
        "response_length": log.response_length,
        "response_content_preview": content_preview(log.response_content_preview, mask),
        "duration": log.duration,
        "total_duration": log.total_duration,
        "is_complete": log.is_complete,
        "attempt": log.attempt,
        "is_hedge": log.is_hedge,
        "superseded": log.superseded,
        "total_attempts": log.total_attempts,
        "delay": log.delay,
        "delay_source": log.delay_source,
        "stop_reason": log.stop_reason and str(log.stop_reason),
        "retry_error": log.retry_error and describe_error(log.retry_error, mask),
        "children": [to_dict(child) for child in log.children],
    } | _calls(log)


def _calls(log: LogFacts) -> dict[str, Any]:
    """Return the values that only the log of a call of a function has."""
    if log.request_method is not None:
        return {}
    calls = [to_dict(call) for call in log.calls]
    return {"calls": calls, "dropped_calls": log.dropped_calls}


def _text(value: object, mask: Mask) -> str | None:
    return None if value is None else mask.text(str(value))


def _headers(headers: Mapping[str, str] | None, mask: Mask) -> dict[str, str] | None:
    return None if headers is None else mask.headers(headers)
