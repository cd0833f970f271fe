"""A log as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .tree import content_preview, describe_cause, describe_error

if TYPE_CHECKING:
    from .record import LogRecord


def to_dict(log: LogRecord) -> dict[str, Any]:
    """Return a log and its attempts as plain JSON values."""
    mask = log.mask
    reason, headers = log.response_reason, log.response_headers
    return {
        "name": mask.text(log.name),
        "request_method": mask.text(log.request_method),
        "request_url": mask.text(str(log.request_url)),
        "request_headers": mask.headers(log.request_headers),
        "request_content_preview": content_preview(log.request_content_preview, mask),
        "request_started_at": log.request_started_at.isoformat(),
        "request_length": log.request_length,
        "request_duration": log.request_duration,
        "sent": log.sent,
        "response_timeout": log.response_timeout,
        "response_status": log.response_status,
        "response_reason": None if reason is None else mask.text(reason),
        "response_headers": None if headers is None else mask.headers(headers),
        "response_cause": describe_cause(log),
        "response_length": log.response_length,
        "response_content_preview": content_preview(log.response_content_preview, mask),
        "duration": log.duration,
        "total_duration": log.total_duration,
        "is_complete": log.is_complete,
        "attempt": log.attempt,
        "total_attempts": log.total_attempts,
        "delay": log.delay,
        "delay_source": log.delay_source,
        "stop_reason": log.stop_reason and str(log.stop_reason),
        "retry_error": log.retry_error and describe_error(log.retry_error, mask),
        "children": [to_dict(child) for child in log.children],
    }
