"""The alert rules, and the file that Prometheus loads."""

import json
import textwrap
from typing import NamedTuple

from promql import rate, select, sum_by

_OF_HOST = "job, host"


class Rule(NamedTuple):
    """One alert."""

    name: str
    query: str
    lasting: str
    """How long the query must have a result before somebody is told."""

    summary: str
    text: str
    """What it means, and what to do."""


def _sum_by(labels, name, *filters, suffix=""):
    return sum_by(labels, name, *filters, suffix=suffix, window="5m")


def _rate(name):
    return rate(name, window="5m")


_AT_DEADLINE = 'stop_reason="deadline"'
_OPEN = 'state=~"open|half_open"'
_LEFT_ALONE = 'state=~"ejected|unhealthy"'

RULES = [
    Rule(
        "RetryShareHigh",
        f"{_sum_by(_OF_HOST, 'retries')}\n"
        "  /\n"
        f"{_sum_by(_OF_HOST, 'attempts')}\n"
        "  > 0.1",
        "10m",
        "{{ $value | humanizePercentage }} of the attempts at {{ $labels.host }} "
        "are retries",
        "The server fails or throttles, and each call costs it more than one request. "
        "The attempts by status say which; a retry budget keeps it from growing.",
    ),
    Rule(
        "BudgetEmpty",
        f"min_over_time({select('retry_budget_tokens')}[5m]) < 1\n"
        "  and\n"
        f"{_rate('retry_budget_refusals')} > 0",
        "5m",
        "The retry budget {{ $labels.retry_budget }} is empty and refuses retries",
        "Too many calls fail for retries to help, so calls end with the failure of an "
        "attempt. Look at the server first: a larger budget is load for it.",
    ),
    Rule(
        "BreakerOpenLong",
        "max without (state) (\n"
        f"  {select('circuit_breaker_state', _OPEN)}\n"
        ") > 0\n"
        "  and\n"
        f"{_rate('circuit_breaker_rejections')}\n"
        "  + sum without (state) (\n"
        f"    {_rate('circuit_breaker_transitions')}\n"
        "  ) > 0",
        "5m",
        "The circuit breaker {{ $labels.circuit_breaker }} is open for 5 minutes",
        "Each trial request fails, so the server is down for this client. A circuit "
        "breaker that nobody asks stays open, and is none of these.",
    ),
    Rule(
        "CallsStopAtDeadline",
        f"{_sum_by(_OF_HOST, 'call_duration_seconds', _AT_DEADLINE, suffix='_count')}\n"
        "  /\n"
        f"{_sum_by(_OF_HOST, 'call_duration_seconds', suffix='_count')}\n"
        "  > 0.01",
        "10m",
        "{{ $value | humanizePercentage }} of the calls to {{ $labels.host }} "
        "run out of time",
        "Attempts and waits do not fit into the deadline. Compare the p99 of attempts "
        "with attempt_timeout, and attempts times that with the deadline.",
    ),
    Rule(
        "LimitRefuses",
        f"{_sum_by('job, concurrency_limit', 'concurrency_limit_refusals')}\n  > 0",
        "5m",
        "The concurrency limit {{ $labels.concurrency_limit }} refuses requests",
        "More is asked for than the limit lets through, or the server became slow and "
        "keeps its places. Compare the durations of attempts before you raise it.",
    ),
    Rule(
        "EndpointEjectedLong",
        "sum without (state) (\n"
        f"  avg_over_time({select('endpoints', _LEFT_ALONE)}[15m])\n"
        ") > 0.5",
        "5m",
        "Endpoints of {{ $labels.group }} are left alone for 15 minutes",
        "On average {{ $value | humanize }} of them, the times between counted. The "
        "ejections by reason say why; by_endpoint=True says which.",
    ),
]

_HEAD = """\
# Load this with rule_files in prometheus.yml, and change the numbers to your needs.
# Made by tests/tools/monitoring/make_monitoring.py.
groups:
  - name: aioretry_smithy
    rules:
"""


def alerts():
    """Return the file, as YAML."""
    return _HEAD + "".join(map(_written, RULES))


def _written(rule):
    # A string of JSON is one of YAML, too.
    return (
        f"      - alert: {rule.name}\n"
        "        expr: |\n"
        f"{textwrap.indent(rule.query, ' ' * 10)}\n"
        f"        for: {rule.lasting}\n"
        "        labels:\n"
        "          severity: warning\n"
        "        annotations:\n"
        f"          summary: {json.dumps(rule.summary)}\n"
        f"          description: {json.dumps(rule.text)}\n"
    )
