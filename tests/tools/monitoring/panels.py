"""The panels of the dashboard: what each one is called, asks for and shows."""

from typing import NamedTuple

from promql import quantile, select, sum_by

JOB, HOST = 'job=~"$job"', 'host=~"$host"'


class Panel(NamedTuple):
    """One panel, without its place."""

    title: str
    text: str
    """What to look for, shown at the title."""

    unit: str
    """In Grafana's words."""

    targets: dict[str, str]
    """The legend of each query, and the query."""

    kind: str = "timeseries"
    width: int = 12
    is_stacked: bool = False


class Row(NamedTuple):
    """Panels below one headline, which folds them."""

    title: str
    panels: list[Panel]


def _share(part, whole):
    return f"{part}\n  /\n{whole}"


def _calls(labels, *filters):
    name, suffix = "call_duration_seconds", "_count"
    return sum_by(labels, name, JOB, HOST, *filters, suffix=suffix)


def _attempts(labels, name="attempts"):
    return sum_by(labels, name, JOB, HOST)


CALLS = Row(
    "Calls",
    [
        Panel(
            "Calls by how they end",
            "How many calls end in a second, by how they end. none is a success.",
            "reqps",
            {"{{stop_reason}}": _calls("stop_reason")},
            is_stacked=True,
        ),
        Panel(
            "Calls without success",
            "The share of calls that ended without success, by why they stopped.",
            "percentunit",
            {
                "{{stop_reason}}": _share(
                    _calls("stop_reason", 'stop_reason!="none"'),
                    f"on () group_left ()\n{_calls('')}",
                )
            },
            is_stacked=True,
        ),
        Panel(
            "Duration of calls",
            "With all attempts and waits, to the headers of the last response.",
            "s",
            {
                "p50": quantile(0.5, "", "call_duration_seconds", JOB, HOST),
                "p99": quantile(0.99, "", "call_duration_seconds", JOB, HOST),
            },
        ),
        Panel(
            "Duration of calls by host, p99",
            "Which server is slow?",
            "s",
            {"{{host}}": quantile(0.99, "host", "call_duration_seconds", JOB, HOST)},
        ),
    ],
)

ATTEMPTS = Row(
    "Attempts",
    [
        Panel(
            "Attempts by status",
            "What a server is sent in a second. refused and unsent reached none.",
            "reqps",
            {"{{status_class}}": _attempts("status_class")},
            is_stacked=True,
        ),
        Panel(
            "Retries as a share of attempts",
            "Some percent are usual. More than 20 % is a storm in the making.",
            "percentunit",
            {"{{host}}": _share(_attempts("host", "retries"), _attempts("host"))},
        ),
        Panel(
            "Duration of attempts",
            "Far below that of calls? Then calls wait, and servers are quick.",
            "s",
            {
                "p50": quantile(0.5, "", "attempt_duration_seconds", JOB, HOST),
                "p99": quantile(0.99, "", "attempt_duration_seconds", JOB, HOST),
            },
        ),
        Panel(
            "Hedges",
            "Those that win are worth their requests; under 5 % of them are not.",
            "reqps",
            {
                "sent": _attempts("", "hedges"),
                "won": _attempts("", "hedges_won"),
                "refused": _attempts("", "hedges_refused"),
            },
        ),
    ],
)

CONNECTIONS = Row(
    "Connections, with connection_timings()",
    [
        Panel(
            "Requests in the queue of the pool",
            "On average. More than 0 for long: the pool of this client is too small.",
            "none",
            {
                "{{host}}": sum_by(
                    "host",
                    "connection_wait_seconds",
                    JOB,
                    HOST,
                    'part="queued"',
                    suffix="_sum",
                )
            },
            is_stacked=True,
        ),
        Panel(
            "Waits for a connection, p99",
            "In the queue of the pool, for DNS, and to connect, TLS included.",
            "s",
            {"{{part}}": quantile(0.99, "part", "connection_wait_seconds", JOB, HOST)},
        ),
    ],
)

PROTECTION = Row(
    "Circuit breakers, budgets and limits",
    [
        Panel(
            "Circuit breakers that are not closed",
            "1 for a circuit breaker in the state; of several processes how many.",
            "none",
            {
                "{{circuit_breaker}} {{state}}": "sum by (circuit_breaker, state) ("
                + select("circuit_breaker_state", JOB, 'state!="closed"')
                + ") > 0"
            },
        ),
        Panel(
            "Requests that circuit breakers refuse",
            "In a second, by circuit breaker.",
            "reqps",
            {
                "{{circuit_breaker}}": sum_by(
                    "circuit_breaker", "circuit_breaker_rejections", JOB
                )
            },
        ),
        Panel(
            "Tokens of retry budgets",
            "Of the emptiest process. Below 1 nothing is retried.",
            "none",
            {
                "{{retry_budget}}": "min by (retry_budget) ("
                f"{select('retry_budget_tokens', JOB)})"
            },
        ),
        Panel(
            "Retries that budgets refuse",
            "In a second, by budget.",
            "reqps",
            {"{{retry_budget}}": sum_by("retry_budget", "retry_budget_refusals", JOB)},
        ),
        Panel(
            "Requests at concurrency limits",
            "In flight beside the limit; pending ones wait for a place.",
            "none",
            {
                f"{{{{concurrency_limit}}}} {words}": "sum by (concurrency_limit) ("
                f"{select(f'concurrency_limit_{name}', JOB)})"
                for name, words in (
                    ("limit", "limit"),
                    ("in_flight", "in flight"),
                    ("pending", "pending"),
                )
            },
        ),
        Panel(
            "Requests that limits refuse",
            "In a second: they got no place in time, or none in the queue.",
            "reqps",
            {
                "{{concurrency_limit}}": sum_by(
                    "concurrency_limit", "concurrency_limit_refusals", JOB
                )
            },
        ),
    ],
)

ENDPOINTS = Row(
    "Endpoints",
    [
        Panel(
            "Endpoints by state",
            "Of each process: how many it sends to, and how many it leaves alone.",
            "none",
            {
                "{{group}} {{state}}": "avg by (group, state) (sum by "
                f"(job, instance, group, state) ({select('endpoints', JOB)}))"
            },
            is_stacked=True,
        ),
        Panel(
            "Ejections",
            "In a second, by group and reason.",
            "reqps",
            {"{{group}} {{reason}}": sum_by("group, reason", "ejections", JOB)},
        ),
    ],
)

FUNCTIONS = Row(
    "Functions",
    [
        Panel(
            "Attempts of functions",
            "In a second, by what came of them.",
            "reqps",
            {"{{name}} {{outcome}}": sum_by("name, outcome", "rpc_attempts", JOB)},
            is_stacked=True,
        ),
        Panel(
            "Retries of functions as a share of attempts",
            "By function.",
            "percentunit",
            {
                "{{name}}": _share(
                    sum_by("name", "rpc_retries", JOB),
                    sum_by("name", "rpc_attempts", JOB),
                )
            },
        ),
        Panel(
            "Duration of calls of functions, p99",
            "With all attempts and waits, and the requests inside them.",
            "s",
            {"{{name}}": quantile(0.99, "name", "rpc_call_duration_seconds", JOB)},
        ),
        Panel(
            "Duration of attempts of functions, p99",
            "Far below that of calls? Then calls wait.",
            "s",
            {"{{name}}": quantile(0.99, "name", "rpc_attempt_duration_seconds", JOB)},
        ),
    ],
)

ROWS = [CALLS, ATTEMPTS, CONNECTIONS, PROTECTION, ENDPOINTS, FUNCTIONS]
