"""What cannot be encoded is refused or shown, and curl sends what a log shows."""

import asyncio
import importlib
import importlib.util
import io
import json
import logging
import shutil

import aiohttp
import pytest
from chains import Always, connected, decorated, retrying
from stream_server import StreamServer
from yarl import URL

from aioretry_smithy import (
    CircuitBreaker,
    CircuitState,
    ConcurrencyLimit,
    ContentPreviewingClient,
    FailFastError,
    LogFormatter,
    LoggingClient,
    RequestLog,
    RetryBudget,
    SessionBuilder,
    capture_logs,
)
from aioretry_smithy._errors import bad_argument
from aioretry_smithy.testing import ScriptedTransport

HALF = "\udcff"
"""Half a surrogate pair: what aiohttp makes of the byte 0xFF in a header."""

ANSWERS = {
    "reason": b"HTTP/1.1 503 Bad \xff\r\nContent-Length: 0\r\n\r\n",
    "header": b"HTTP/1.1 503 Bad\r\nX-A: \xff\xfe\r\nContent-Length: 0\r\n\r\n",
    "repeated header": (
        b"HTTP/1.1 503 Bad\r\nX-A: \xff\r\nX-A: \xfe\r\nContent-Length: 0\r\n\r\n"
    ),
    "name": b"HTTP/1.1 503 Bad\r\nX-\xff: 1\r\nContent-Length: 0\r\n\r\n",
    "status": b"HTTP/1.1 \xff Bad\r\nContent-Length: 0\r\n\r\n",
    "redirect": (
        b"HTTP/1.1 302 Found\r\nLocation: http://[\xff/\r\nContent-Length: 0\r\n\r\n"
    ),
    "redirect elsewhere": (
        b"HTTP/1.1 302 Found\r\nLocation: \xff://a/\r\nContent-Length: 0\r\n\r\n"
    ),
    "hint": (b"HTTP/1.1 503 Bad\r\nRetry-After: \xff\r\nContent-Length: 0\r\n\r\n"),
    "body": (
        b"HTTP/1.1 503 Bad\r\nContent-Type: text/plain; charset=utf-7\r\n"
        b"Content-Length: 5\r\n\r\n+2AA-"
    ),
    "encoding": (
        b"HTTP/1.1 503 Bad\r\nContent-Type: text/plain; charset=\xff\r\n"
        b"Content-Encoding: \xff\r\nContent-Length: 1\r\n\r\na"
    ),
}

CALLS = {
    "method": {"method": f"GET{HALF}"},
    "url": {"url": f"http://localhost/{HALF}"},
    "host": {"url": f"http://{HALF}/"},
    "parameter": {"params": f"a={HALF}"},
    "header": {"headers": {"X-A": HALF}},
    "name": {"headers": {f"X-{HALF}": "1"}},
    "content": {"data": HALF},
}


class Odd:
    def __repr__(self):
        return HALF


@pytest.fixture
def lines(caplog):
    """A function that returns what the loggers wrote."""
    caplog.set_level(logging.DEBUG, "aioretry_smithy")
    return lambda: [record.getMessage() for record in caplog.records]


def builder(*inside, around=lambda client: client):
    """Make a chain that shows as much of a call as it can, and tries twice."""
    return decorated(
        SessionBuilder(),
        *inside,
        around,
        LoggingClient.new_decorator(),
        ContentPreviewingClient.new_decorator(100),
        retrying(Always(), max_total_attempts=2),
        LoggingClient.new_decorator(formatter=LogFormatter.json(nested=True)),
        LoggingClient.new_decorator(formatter=LogFormatter.json()),
        around,
    )


async def made(chain, method="GET", url="http://localhost/", **options):
    """Make a call, and return its log and what it raised."""
    async with chain.build() as session:
        with capture_logs() as logs:
            try:
                async with session.request(method, url, **options) as response:
                    await response.read()
            except (aiohttp.ClientError, ValueError, TypeError) as error:
                return logs[0], error
    return logs[0], None


def texts_in(value):
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.items() for text in texts_in(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in texts_in(item)]
    return []


def views(log, error, directory):
    """Return all that a call shows of itself to people and to machines."""
    log.to_svg(directory / "call.svg")
    shown = [
        log.render(),
        repr(log),
        repr(log.request),
        (directory / "call.svg").read_text(encoding="utf-8"),
        *getattr(error, "__notes__", ()),
        *texts_in(log.to_dict()),
        json.dumps(log.to_dict(), ensure_ascii=False),
    ]
    for each in (log, *log.children):
        for formatter in (LogFormatter.text(), LogFormatter.json()):
            shown.append(formatter.format_request(each))
            shown.append(formatter.format_response(each))
    if importlib.util.find_spec("rich"):
        output, rich = io.StringIO(), importlib.import_module("rich.console")
        rich.Console(file=output, force_terminal=True, width=100).print(log)
        shown.append(output.getvalue())
    return shown


def broken(texts):
    """Return those that UTF-8 cannot carry, also in the JSON that they hold."""
    texts = list(texts)
    for text in list(texts):
        if text.startswith("{"):
            texts += texts_in(json.loads(text))
    return [text for text in texts if any("\ud800" <= c <= "\udfff" for c in text)]


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_what_a_server_sends_is_shown_encodable(serve, lines, tmp_path, answer):
    """In the tree, as values, in the lines, in the notes and in the pictures."""
    log, error = await made(builder(), url=await serve([answer]))

    assert 2 == log.total_attempts
    assert [] == broken([*views(log, error, tmp_path), *lines()])


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_what_a_caller_sends_is_shown_encodable(lines, tmp_path, call):
    """Many a caller passes on what came from elsewhere."""
    transport = ScriptedTransport([503, 503])
    log, error = await made(builder(transport), **call)

    assert [] == broken([*views(log, error, tmp_path), *lines()])


@pytest.fixture
def heard():
    pytest.importorskip("opentelemetry.sdk")
    return importlib.import_module("heard").Heard()


def exported(heard):
    """Return all texts that an exporter would get."""
    for span in heard.spans():
        yield from (span.name, span.status.description or "")
        for each in (span, *span.events):
            yield from (each.name, *texts_in(dict(each.attributes)))
    for metric in heard.metrics().values():
        for point in metric.data.data_points:
            yield from texts_in(dict(point.attributes))


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_spans_of_what_a_server_sends_can_be_exported(serve, heard, answer):
    """A single attribute that cannot be encoded costs an exporter the whole batch."""
    await made(builder(around=heard.decorator()), url=await serve([answer]))

    assert 3 == len(heard.spans())
    assert [] == broken(exported(heard))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_spans_of_what_a_caller_sends_can_be_exported(heard, call):
    """Also where aiohttp would refuse to send it."""
    transport = ScriptedTransport([503, 503])
    await made(builder(transport, around=heard.decorator()), **call)

    assert heard.spans()
    assert [] == broken(exported(heard))


@pytest.mark.parametrize("answer", [ANSWERS["redirect"], ANSWERS["reason"]])
async def test_metrics_can_be_scraped(serve, answer):
    """Labels are made of hosts, methods and outcomes."""
    prometheus = pytest.importorskip("prometheus_client")
    client = importlib.import_module("aioretry_smithy.prometheus").MetricsClient
    registry = prometheus.CollectorRegistry()
    counting = client.new_decorator(registry)
    await made(builder(around=counting), url=await serve([answer]))

    assert b"aioretry_smithy_attempts_total" in prometheus.generate_latest(registry)


@pytest.mark.parametrize("kind", ["opentelemetry", "prometheus"])
def test_names_of_breakers_budgets_and_limits_can_be_exported(kind, heard):
    """They may be made of texts from elsewhere."""
    prometheus = pytest.importorskip("prometheus_client")
    telemetry = importlib.import_module(f"aioretry_smithy.{kind}")
    registry = prometheus.CollectorRegistry()
    place = registry if kind == "prometheus" else heard.meter_provider
    breaker = CircuitBreaker(HALF, listeners=[telemetry.CircuitBreakerMetrics(place)])
    breaker.enter_state(CircuitState.FORCED_OPEN)
    breaker.try_request()
    metrics, budget = telemetry.RetryBudgetMetrics(place), RetryBudget(HALF)
    metrics.on_tokens_changed(budget)
    metrics.on_retry_refused(budget, None)
    limit = ConcurrencyLimit.fixed(1, name=HALF)
    telemetry.ConcurrencyLimitMetrics(place).on_refused(limit, None)
    texts = [*exported(heard), prometheus.generate_latest(registry).decode()]

    assert any(r"\udcff" in text for text in texts)
    assert [] == broken(texts)


@pytest.mark.parametrize(
    "error",
    [
        FailFastError(CircuitBreaker(HALF)),
        bad_argument("name", Odd(), "something else"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_of_ours_say_nothing_that_breaks(error):
    """Errors can be logged in any encoding."""
    assert [] == broken([str(error), repr(error)])


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
OF_BODY = {"content-length", "transfer-encoding"}


@pytest.fixture
async def heads():
    """The URL of a server, and the heads of requests that it has received."""
    received = []

    async def handle(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        received.append(head.decode().split("\r\n")[:-2])
        writer.write(ANSWER)

    async with StreamServer(handle) as server:
        yield server.url(path=""), received


async def run(command, folder):
    """Run a command in Bash, without settings of whoever runs the tests."""
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", command, env={"HOME": str(folder), "PATH": "/usr/bin:/bin"}
    )
    assert 0 == await asyncio.wait_for(process.wait(), 120.0)


def read(head):
    """Return the first line of a head, and its headers but for those of a body."""
    first, *lines = head
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        if name.lower() not in OF_BODY:
            headers[name.lower()] = value.strip()
    return first, headers


def shown(log):
    """Return the same of what a log shows."""
    values = log.to_dict()
    headers = {
        name.lower(): value
        for name, value in values["request_headers"].items()
        if name.lower() not in OF_BODY
    }
    target = URL(values["request_url"], encoded=True).raw_path_qs
    return f"{values['request_method']} {target} HTTP/1.1", headers


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize(
    ("method", "target", "options"),
    [
        ("GET", "/orders?a=1&b=%20", {}),
        ("GET", "/", {"headers": {"Authorization": "Bearer S3CR3T"}}),
        ("HEAD", "/orders", {}),
        ("OPTIONS", "/orders", {"headers": {"X-Empty": "", "X-At": "@/etc/passwd"}}),
        ("DELETE", "/orders/1", {"headers": {"X-Quotes": 'it\'s "a" $HOME `id` \\'}}),
        ("POST", "/orders", {"json": {"a": 1}}),
        ("PUT", "/orders", {"data": b"a", "chunked": True}),
        ("GET", "/%E2%82%AC", {"headers": {"X-Euro": "\u20ac \u202e"}}),
        ("GET", "/", {"skip_auto_headers": ["User-Agent", "Accept"]}),
        ("PATCH", URL("/a/./b/../c?d[]=e{f}", encoded=True), {}),
        ("GET", URL("/%2e%2E/a", encoded=True), {}),
    ],
)
async def test_curl_sends_what_the_log_shows(heads, tmp_path, method, target, options):
    """Method, target and headers are the same; only the body is missing."""
    server, received = heads
    url = URL(f"{server}{target}", encoded=True)
    client = connected(None, retrying())
    async with client, client.request(method, url, **options) as response:
        log = RequestLog.of(response)

    await run(log.to_curl(), tmp_path)
    sent, repeated = map(read, received)

    assert shown(log) == repeated
    assert sent[0] == repeated[0]
    assert sent[1].keys() == repeated[1].keys()


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
async def test_command_before_an_answer_lets_curl_name_itself(heads, tmp_path):
    """What aiohttp adds is not known yet, but some servers ask for it."""
    server, received = heads
    async with connected(None) as client:
        with pytest.raises(aiohttp.ClientConnectorError) as caught:
            await client.get("http://127.0.0.1:1/orders", headers={"X-A": "b"})
    command = RequestLog.of(caught.value).to_curl()

    await run(command.replace("http://127.0.0.1:1", server), tmp_path)
    ((first, headers),) = map(read, received)

    assert "GET /orders HTTP/1.1" == first
    assert "b" == headers["x-a"]
    assert headers["user-agent"].startswith("curl/")


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize("method", ["GET", "DELETE", "POST"])
async def test_body_that_is_given_keeps_the_method(heads, method, tmp_path):
    """A search with a body stays a GET."""
    url, received = heads
    async with connected(url) as client:
        response = await client.request(method, "/search", json={"query": 1})
    lines = RequestLog.of(response).to_curl().splitlines()
    (tmp_path / "body").write_text('{"query": 1}', encoding="utf-8")
    (told,) = [line for line in lines if "--data-binary" in line]
    option = told[told.index("--data-binary") :].replace("FILE", f"{tmp_path}/body")
    await run("\n".join(lines[:-1]) + f" {option}", tmp_path)
    sent, again = (head[0] for head in received)

    assert f"{method} /search HTTP/1.1" == sent == again
