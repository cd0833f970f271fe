from aioretry_smithy import SessionBuilder

URL = "https://orders.example.com"


def stubborn() -> SessionBuilder:
    return SessionBuilder.standard(
        URL,
        attempt_timeout=1.0,
        max_total_attempts=5,
        limiter=None,
        circuit_breaker=None,
    )


def considerate() -> SessionBuilder:
    return SessionBuilder.standard(URL, attempt_timeout=1.0)
