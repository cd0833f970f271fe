"""The vectors of all SDKs, replayed through the retrying client of a session."""

import json

import pytest
from chains import URL, retrying, session
from token_strategies import load

from aioretry_smithy import RequestLog, RetryStopReason

pytestmark = pytest.mark.virtual_time

OUTCOMES = {
    None: "success",
    RetryStopReason.NO_RETRY: "not_retryable",
    RetryStopReason.MAX_TOTAL_ATTEMPTS: "max_attempts_exceeded",
    RetryStopReason.LIMITER: "quota_exceeded",
}


def answer_of(step):
    """Return what the server answers in a step."""
    headers = {"Content-Type": "application/x-amz-json-1.0"}
    headers |= step.response.get("headers") or {}
    code = step.response.get("code")
    body = b"" if code is None else json.dumps({"__type": code}).encode()
    return step.response["status"], headers, body


def delay_of(step):
    """Return the wait after a step, which may have been in vain."""
    delay = step.delay if step.outcome == "retry" else step.refused_delay or None
    return None if delay is None else pytest.approx(delay)


@pytest.mark.parametrize("vector", load(), ids=lambda vector: vector.id)
async def test_standard_vector(vector):
    """Attempts, quota, delays and the reason to stop are those of the other SDKs."""
    strategy = vector.new_strategy()
    quotas = []

    def look():
        quotas.append(strategy.quota_for("localhost:80").available_capacity)

    def answering(step):
        def answer(ctx, request):
            look()
            return answer_of(step)

        return answer

    answers = [answering(step) for call in vector.calls for step in call]
    async with session(answers, retrying(strategy, use_retry_after=False)) as client:
        for call in vector.calls:
            quotas.clear()
            async with client.get(URL) as response:
                log = RequestLog.of(response)
            look()
            ends = ["retry"] * (len(call) - 1) + [OUTCOMES[log.stop_reason]]
            delays = [child.delay for child in log.children]

            assert [
                (step.outcome, step.quota, delay_of(step)) for step in call
            ] == list(zip(ends, quotas[1:], delays, strict=True))
