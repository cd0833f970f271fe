"""What it takes to import the package, beside what aiohttp takes.

A process for each measurement: what is loaded once costs nothing the second time.
"""

import subprocess
import sys

AIOHTTP = "import aiohttp"
STATEMENTS = {
    "import aioretry_smithy": "import aioretry_smithy",
    "a builder that retries": (
        "from aioretry_smithy import RetryStrategy, RetryingClient, SessionBuilder\n"
        "SessionBuilder().decorator(RetryingClient.new_decorator("
        "RetryStrategy.failsafe()))"
    ),
    "SessionBuilder.standard()": (
        "from aioretry_smithy import SessionBuilder\nSessionBuilder.standard()"
    ),
}
"""What is measured in addition to aiohttp: by its name, in a process of its own."""

_MEASURE = """
import sys, time
start = time.perf_counter()
exec(sys.argv[1])
between = time.perf_counter()
exec(sys.argv[2])
print(between - start, time.perf_counter() - between)
"""


def seconds(statement):
    """Return what aiohttp took in a new process, and then the statement."""
    process = subprocess.run(
        [sys.executable, "-c", _MEASURE, AIOHTTP, statement],
        capture_output=True,
        check=True,
        text=True,
    )
    aiohttp, addition = map(float, process.stdout.split())
    return aiohttp, addition


def ratio(samples):
    """Return the least addition, in units of the least that aiohttp took."""
    whole, additions = zip(*samples, strict=True)
    return min(additions) / min(whole)


def ratios(rounds):
    """Measure each statement in so many processes, which take turns."""
    samples = [[seconds(each) for each in STATEMENTS.values()] for _ in range(rounds)]
    columns = zip(*samples, strict=True)
    return {
        name: ratio(column) for name, column in zip(STATEMENTS, columns, strict=True)
    }
