"""Previews of bodies in the log, and how its views show them."""

from __future__ import annotations

import gc
import json
import weakref

import pytest
from chains import connected, retrying

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    ContentPreviewingClient,
    DecoratingClient,
    LoggingClient,
    RequestLog,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    client_decorator,
    new_response,
)
from aioretry_smithy.testing import ScriptedTransport

URL = "http://example.com/orders"
TEXT = {"Content-Type": "text/plain"}
PREVIEWING = ContentPreviewingClient.new_decorator(20)
RETRYING = retrying(
    RetryStrategy.on_server_error_status(Backoff.fixed(0.5)), max_total_attempts=3
)
ANSWERS = [(503, TEXT, b"busy"), (200, {"Content-Type": "application/json"}, b"{}")]


async def call(*decorators, answers=ANSWERS, **options):
    """Send a request through a chain, the first decorator innermost."""
    async with (
        connected(None, ScriptedTransport(answers), *decorators) as session,
        session.post(URL, **options) as response,
    ):
        return RequestLog.of(response)


@pytest.mark.parametrize("max_length", [0, -1, 1.0, True, None, "9"])
def test_length_is_a_positive_number(max_length):
    """It is checked where the decorator is made."""
    with pytest.raises(ValueError, match="^max_length: .* an int >= 1"):
        ContentPreviewingClient.new_decorator(max_length)


async def test_there_is_one_in_a_chain():
    """Two could not agree upon how much to keep."""
    with pytest.raises(ValueError, match="at most one ContentPreviewingClient"):
        connected(None, PREVIEWING, RETRYING, ContentPreviewingClient.new_decorator(1))


def test_chain_says_how_much_is_kept():
    """With the other settings."""
    chain = SessionBuilder().decorator(PREVIEWING).describe()

    assert "ContentPreviewingClient(max_length=20)" == chain.splitlines()[0]


async def test_standard_chain_takes_it():
    """Inside, so that each attempt has its previews."""
    transport = ScriptedTransport(ANSWERS)
    session = SessionBuilder.standard(inside=[transport, PREVIEWING]).build()
    async with session, session.get(URL) as response:
        log = RequestLog.of(response)

    assert ["busy", "{}"] == [child.response_content_preview for child in log.children]


async def test_log_of_the_call_shows_first_request_and_last_response():
    """As it does with everything else."""

    @client_decorator
    async def number(delegate, ctx, request):
        return await delegate.execute(ctx, request.replace(data=f"no. {ctx.attempt}"))

    log = await call(PREVIEWING, number, RETRYING)

    assert ["no. 1", "no. 2"] == [
        child.request_content_preview for child in log.children
    ]
    assert "no. 1" == log.request_content_preview
    assert "{}" == log.response_content_preview


async def test_outside_only_what_the_call_ends_with_is_seen():
    """The responses in between never come that far."""
    log = await call(RETRYING, PREVIEWING, json={})

    assert [None, "{}"] == [child.response_content_preview for child in log.children]
    assert "{}" == log.response_content_preview == log.request_content_preview


async def test_without_it_there_is_no_preview():
    """Nothing is kept that nobody asked for."""
    log = await call(RETRYING, json={})

    assert log.request_content_preview is None
    assert log.response_content_preview is None
    assert log.to_dict()["request_content_preview"] is None
    assert log.to_dict()["response_content_preview"] is None


async def test_tree_shows_previews_in_a_line_each():
    """The request's stands under the call, a response's under its attempt."""
    log = await call(
        PREVIEWING,
        RETRYING,
        answers=[(503, TEXT, b"busy\nbusy\x1b[2J"), 502, ANSWERS[1]],
        data={"item": "7", "password": "S3CR3T"},
    )
    lines = log.render().splitlines()

    assert "│  > item=7&password=****…" == lines[1]
    assert lines[2].startswith("├─ 1  503")
    assert r"│     < busy\nbusy\x1b[2J" == lines[3]
    assert lines[4].startswith("├─ 2  502")
    assert lines[5].startswith("└─ 3  200")
    assert "      < {}" == lines[6]
    assert 7 == len(lines)


async def test_tree_without_attempts_shows_both_previews():
    """They stand under the line of the call, and are not longer than a line."""
    log = await call(
        ContentPreviewingClient.new_decorator(500),
        answers=[(200, TEXT, b"x" * 600)],
        data="sent",
    )

    assert ["   > sent", f"   < {'x' * 71}…"] == log.render().splitlines()[1:]


async def test_attribute_has_what_the_views_hide():
    """In the views, and in the lines of a log, no secret is seen."""
    secret = b'{"token": "S3CR3T", "shop": "7"}'
    logging = LoggingClient.new_decorator(sensitive_query_parameters=["shop"])
    log = await call(
        ContentPreviewingClient.new_decorator(28),
        logging,
        answers=[(200, {"Content-Type": "application/json"}, secret)],
        data="shop=7&token=S3CR3T",
    )

    assert "shop=7&token=S3CR3T" == log.request_content_preview
    assert '{"token": "S3CR3T", "shop": …' == log.response_content_preview
    assert "shop=****&token=****" == log.to_dict()["request_content_preview"]
    assert '{"token": ****, "shop": …' == log.to_dict()["response_content_preview"]
    assert "S3CR3T" not in log.render() + json.dumps(log.to_dict())


async def test_log_keeps_no_body():
    """Only the preview outlives the call."""

    class Text(str):
        """One that can be watched."""

    body = Text("a" * 100)
    is_alive = weakref.ref(body)
    log = await call(PREVIEWING, data=body, answers=[200])
    del body
    gc.collect()

    assert "a" * 20 + "…" == log.request_content_preview
    assert is_alive() is None


async def test_failed_call_shows_what_was_sent():
    """There is no response to show."""
    with capture_logs() as logs, pytest.raises(TimeoutError):
        await call(PREVIEWING, data="sent", answers=[TimeoutError])

    assert "sent" == logs[0].request_content_preview
    assert logs[0].response_content_preview is None


async def test_response_that_took_the_place_of_another_has_no_preview_of_it():
    """A decorator further out may answer itself."""

    @client_decorator
    async def replace(delegate, ctx, request):
        await delegate.execute(ctx, request)
        return new_response(request, 200, body=b"mine")

    log = await call(PREVIEWING, replace)

    assert log.response_content_preview is None


async def test_failure_after_a_response_has_no_preview_of_it():
    """A decorator further out may refuse the response."""

    @client_decorator
    async def refuse(delegate, ctx, request):
        await delegate.execute(ctx, request)
        raise TimeoutError

    with capture_logs() as logs, pytest.raises(TimeoutError):
        await call(PREVIEWING, refuse, answers=[(503, TEXT, b"busy")])

    assert logs[0].response_content_preview is None


async def test_response_that_a_decorator_answers_with_is_shown():
    """One inside that sends nothing, with a logging client outside."""

    class Answering(DecoratingClient):
        async def execute(self, ctx, request):
            return new_response(request, 503, headers=TEXT, body=b"busy")

    logging = LoggingClient.new_decorator()
    log = await call(Answering, PREVIEWING, logging, answers=[])

    assert "busy" == log.response_content_preview


async def test_response_of_a_fallback_is_shown():
    """Any response that comes back through the decorator has a preview."""
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)

    async def fallback(ctx, request):
        return new_response(request, 200, headers=TEXT, body=b"fallback")

    breaking = CircuitBreakerClient.new_decorator(breaker, fallback=fallback)
    log = await call(breaking, PREVIEWING, answers=[])

    assert "fallback" == log.response_content_preview


async def test_mocked_response_has_a_preview(aioresponses_mock):
    """Responses that aioresponses makes have a stream too."""
    aioresponses_mock.get(URL, body="mocked", content_type="text/plain")
    async with connected(None, PREVIEWING) as session:
        async with session.get(URL) as response:
            body = await response.text()
        log = RequestLog.of(response)

    assert "mocked" == body == log.response_content_preview
