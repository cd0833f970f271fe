"""What a circuit breaker tells and is told."""

from aioretry_smithy import CircuitBreakerListener


class Diary(CircuitBreakerListener):
    """A listener that notes what it hears, and what the circuit breaker says then."""

    def __init__(self):
        self.entries = []

    def on_state_changed(self, circuit_breaker, state):
        self.entries.append((circuit_breaker.state, state))

    def on_event_count_updated(self, circuit_breaker, event_count):
        self.entries.append((event_count.success, event_count.failure))

    def on_request_rejected(self, circuit_breaker):
        self.entries.append("rejected")


def fail(breaker, times):
    """Let requests fail."""
    for _ in range(times):
        breaker.on_failure(breaker.try_request())
