"""Our function in a session: what it is called with, and what stays aiohttp's."""

import asyncio

import aiohttp
import pytest
from aiohttp import ClientTimeout
from calls import begin
from chains import connected, retrying, twice
from fake_responses import Recorder, changing, get
from yarl import URL

from aioretry_smithy import (
    DecoratingClient,
    EndpointGroup,
    HttpRequest,
    LoggingClient,
    RequestLog,
    RetryStopReason,
    SessionBuilder,
    UnprocessedRequestError,
    capture_logs,
    client_decorator,
    decorate,
    is_unprocessed,
)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"timeout": 5.0},
        {"timeout": None},
        {"timeout": 0},
        {"timeout": ClientTimeout(total=5.0, sock_read=1.0)},
        {"headers": {"A": "1"}, "data": b"x", "params": {"a": "b"}},
        {"headers": None, "allow_redirects": False, "raise_for_status": None},
    ],
    ids=str,
)
@pytest.mark.parametrize("decorators", [[], [DecoratingClient], [retrying(1.0)]])
async def test_first_attempt_injects_nothing(wire, decorators, options):
    """The arguments that aiohttp gets are the caller's, object for object."""
    await get(*decorators, **options)
    call = wire.calls[0]

    assert ("GET", "/") == (call.method, call.url)
    assert options == call.options
    assert all(options[name] is call.options[name] for name in options)


async def test_url_is_passed_as_it_was_given(wire):
    """Joining with the base is aiohttp's; a URL object stays that object."""
    url = URL("http://other/a")
    async with connected("http://h") as session:
        await session.get(url)

    assert url is wire.calls[0].url


async def test_changed_request_is_what_goes_out(wire):
    """Method, URL, headers and options of a decorator's copy reach aiohttp."""

    def change(ctx, request):
        return request.replace(
            method="put", url="/b", headers={"A": "1"}, data=b"x", params=None
        )

    await get(changing(change), params={"a": "b"})
    call = wire.calls[0]

    assert ("put", "/b") == (call.method, call.url)
    assert {"headers": {"A": "1"}, "data": b"x", "params": None} == call.options


@pytest.mark.parametrize("method", ["get", "Get", "GET", "x-own"])
@pytest.mark.parametrize("decorators", [[], [DecoratingClient], [retrying(1.0)]])
async def test_method_is_passed_as_it_was_spelt(wire, decorators, method):
    """In each attempt; rules, keys and logs have it in upper case."""
    wire.answers = [503]
    seen = []
    look = changing(lambda ctx, request: seen.append(request.method))
    async with connected("http://h", look, *decorators) as session:
        response = await session.request(method, "/", headers={"A": "1"})
    log = RequestLog.of(response)

    assert {method} == {call.method for call in wire.calls}
    assert {method.upper()} == {*seen}
    assert method.upper() == log.request_method
    assert log.render().startswith(f"{method.upper()} http://h/")


async def test_request_to_an_endpoint_is_spelt_as_it_was(wire):
    """It gets another URL, and nothing else."""
    async with connected(EndpointGroup.of("http://h:7")) as session:
        await session.request("get", "/")

    assert ["get"] == [call.method for call in wire.calls]


async def test_what_is_no_method_is_reported_by_aiohttp():
    """Our own keys and logs never do."""
    chain = [retrying(1.0), LoggingClient.new_decorator()]
    async with connected("http://h", *chain) as session:
        with pytest.raises((AttributeError, TypeError)) as caught:
            await session.request(None, "/")
    log = RequestLog.of(caught.value)

    assert None is log.request_method
    assert 1 == log.total_attempts


async def test_class_is_looked_up_when_called(monkeypatch):
    """A mock that patches the class after the session was built is in effect."""
    async with connected(None) as session:
        recorder = Recorder()

        async def _request(self, method, url, **options):
            assert session is self
            return await recorder(self, method, url, **options)

        monkeypatch.setattr(aiohttp.ClientSession, "_request", _request)
        await session.get("http://h/")

    assert 1 == len(recorder.calls)


async def test_upload_tracker_goes_with_the_first_attempt(wire):
    """Aiohttp binds a tracker once; a further attempt must not pass it on."""
    wire.answers = [503, 503, 200]
    tracker = object()
    await get(retrying(1.0), upload_tracker=tracker)

    assert [tracker, None, None] == [o["upload_tracker"] for o in wire.options]


async def test_no_upload_tracker_is_no_body(wire):
    """An explicit None for it is not taken for something that was used up."""
    wire.answers = [503, 200]
    response = await get(retrying(1.0), upload_tracker=None)

    assert 200 == response.status


async def refuse_with_value_error(response):
    if response.status == 404:
        raise ValueError(await response.text())


async def let_pass(response):
    await response.read()


def refusing(of_session):
    return connected("http://h", retrying(1.0), raise_for_status=of_session)


@pytest.mark.parametrize(
    ("of_session", "of_request", "error"),
    [
        (True, {}, aiohttp.ClientResponseError),
        (True, {"raise_for_status": None}, aiohttp.ClientResponseError),
        (False, {"raise_for_status": True}, aiohttp.ClientResponseError),
        (refuse_with_value_error, {}, ValueError),
        (False, {"raise_for_status": refuse_with_value_error}, ValueError),
        (True, {"raise_for_status": refuse_with_value_error}, ValueError),
    ],
)
async def test_refusal_comes_after_the_last_attempt(
    wire, of_session, of_request, error
):
    """Attempts see the status as it is; the caller gets the error, and the log both."""
    wire.answers = [503, 404]
    async with refusing(of_session) as session:
        with pytest.raises(error) as caught:
            await session.get("/", **of_request)
    log = RequestLog.of(caught.value)

    assert caught.type is error
    assert (404, error) == (log.response_status, type(log.response_cause))
    assert (2, RetryStopReason.NO_RETRY) == (log.total_attempts, log.stop_reason)
    assert 2 == len(caught.value.__notes__)
    assert not any(options.get("raise_for_status") for options in wire.options)


@pytest.mark.parametrize(
    ("of_session", "of_request"),
    [
        (False, {}),
        (True, {"raise_for_status": False}),
        (True, {"raise_for_status": let_pass}),
        (refuse_with_value_error, {"raise_for_status": False}),
        (let_pass, {}),
    ],
)
async def test_request_s_setting_beats_the_session_s(wire, of_session, of_request):
    """A response that the request or the callable lets pass is like any other."""
    wire.answers = [503, 404]
    async with refusing(of_session) as session:
        response = await session.get("/", **of_request)

    assert 404 == response.status
    assert RequestLog.of(response).response_cause is None
    assert not any(options.get("raise_for_status") for options in wire.options)


async def test_refused_response_is_closed(wire):
    """Nobody else could: the caller never sees it."""
    seen = []

    async def refuse(response):
        seen.append(response)
        raise ValueError

    with pytest.raises(ValueError):
        await get(raise_for_status=refuse)
    assert isinstance(seen[0].content.exception(), aiohttp.ClientConnectionError)


async def test_cancellation_while_refusing(wire):
    """A cancellation in a callable of the user's leaves a finished log behind."""

    async def refuse(response):
        await asyncio.sleep(10.0)

    with capture_logs() as logs:
        call = asyncio.create_task(get(retrying(1.0), raise_for_status=refuse))
        await asyncio.sleep(1.0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    assert logs[0].is_complete
    assert isinstance(logs[0].response_cause, asyncio.CancelledError)


async def chunks():
    yield b"abc"


def form_of_chunks():
    form = aiohttp.FormData()
    form.add_field("a", chunks(), filename="a")
    return form


ONE_SHOT = [chunks, form_of_chunks]


@pytest.mark.parametrize("make", ONE_SHOT)
async def test_body_that_was_read_is_not_sent_again(wire, make):
    """The retrying client stops with the outcome that it has."""
    wire.answers = [503]
    response = await get(retrying(1.0), data=make())

    assert 1 == len(wire.calls)
    assert 503 == response.status
    assert RetryStopReason.BODY_NOT_REPLAYABLE == RequestLog.of(response).stop_reason


@pytest.mark.parametrize("make", ONE_SHOT)
async def test_delegate_called_twice_does_not_send_a_read_body(wire, make):
    """Better refused than sent short; the server has seen the first one."""
    with capture_logs() as logs, pytest.raises(UnprocessedRequestError) as caught:
        await get(twice, data=make())

    assert 1 == len(wire.calls)
    assert not is_unprocessed(caught.value)
    assert caught.value is logs[0].response_cause


async def test_refused_body_is_not_tried_over_and_over(wire):
    """Inside a retrying client the refusal ends the call too."""
    with pytest.raises(UnprocessedRequestError) as caught:
        await get(twice, retrying(1.0), data=chunks())
    log = RequestLog.of(caught.value)

    assert (1, 1) == (len(wire.calls), log.total_attempts)
    assert RetryStopReason.BODY_NOT_REPLAYABLE == log.stop_reason


async def test_headers_of_the_session_are_in_the_log(wire):
    """They go out, so they are shown, although nothing merges them into the request."""
    seen = []
    look = changing(lambda ctx, request: seen.append(dict(ctx.log.request_headers)))
    async with connected("http://h", look, headers={"A": "0", "B": "0"}) as session:
        await session.get("/", headers={"a": "1"})

    assert [{"a": "1", "B": "0"}] == seen
    assert {"a": "1"} == wire.options[0]["headers"]


async def test_failure_is_in_both_logs_when_it_is_raised(wire):
    """The innermost client has recorded the failure before anybody sees it."""
    seen = []

    @client_decorator
    async def look(delegate, ctx, request):
        try:
            return await delegate.execute(ctx, request)
        except TimeoutError as cause:
            seen.append(ctx.log.response_cause is cause)
            raise

    wire.answers = [TimeoutError(), TimeoutError()]
    with pytest.raises(TimeoutError):
        await get(look, retrying(1.0, max_total_attempts=2))

    assert [True, True] == seen


@pytest.mark.parametrize("decorators", [[], [retrying(1.0)]], ids=["plain", "retrying"])
async def test_decorator_that_forgot_to_return(wire, decorators):
    """The error that comes of it is in the log, which ends with it."""

    @client_decorator
    async def forgetful(delegate, ctx, request):
        await delegate.execute(ctx, request)

    with (
        capture_logs() as logs,
        pytest.raises(TypeError, match=r"response: None \(expected: ") as caught,
    ):
        await get(forgetful, *decorators)

    assert 1 == len(wire.calls)
    assert repr(caught.value) == repr(logs[0].response_cause)
    assert logs[0] is RequestLog.of(caught.value)


async def test_chain_that_was_only_described_has_no_session():
    """A client that was kept from a description cannot send anything."""
    clients = []
    builder = SessionBuilder().decorator(clients.append)
    with pytest.raises(ValueError, match="one that returns an HttpClient"):
        builder.describe()
    request = HttpRequest("GET", "http://h/")

    with pytest.raises(RuntimeError, match=r"^Session is closed$"):
        await clients[0].execute(begin(request), request)


class FailingResolver(aiohttp.abc.AbstractResolver):
    async def resolve(self, host, port=0, family=0):
        raise OSError(None, "no names here")

    async def close(self):
        pass


async def outcome(session, /, *arguments, **options):
    try:
        return (await session.request(*arguments, **options)).status
    except Exception as error:
        return type(error), str(error)


async def both(base_url, /, *arguments, **options):
    """Make a request of a plain session and of a decorated one; return both ends."""
    ends = []
    for decorators in ([], [DecoratingClient, retrying(1.0)]):
        connector = aiohttp.TCPConnector(resolver=FailingResolver())
        session = aiohttp.ClientSession(base_url, connector=connector)
        if decorators:
            decorate(session, *decorators)
        async with session:
            ends.append(await outcome(session, *arguments, **options))
    return ends


@pytest.mark.parametrize(
    "url",
    [
        "",
        "//",
        "//h:99999/",
        "http://h:99999/",
        "http://[::1",
        "http://\u2028/",
        "http://é\u200b.com/",
        "http://u:p/q@h/",
        "http:///x",
        "ftp://h/",
        "mailto:x",
        "/relative",
        "\x00",
        "a b",
        b"http://h/",
        None,
        5,
        object,
    ],
    ids=repr,
)
async def test_bad_urls_raise_what_aiohttp_raises(url):
    """Type and message are those of a plain session, and nothing is retried."""
    plain, decorated = await both(None, "GET", url)

    assert isinstance(plain, tuple)
    assert plain == decorated


async def test_unusable_host_names_raise_what_aiohttp_raises():
    """A label that is too long for a name is found out while connecting."""
    plain, decorated = await both("http://h/", "GET", f"http://{'a' * 64}é.com/")

    assert isinstance(plain, tuple)
    assert plain == decorated


@pytest.mark.parametrize(
    "options",
    [
        {"params": 5},
        {"headers": 5},
        {"headers": ["x"]},
        {"cookies": 5},
        {"timeout": "5"},
        {"data": b"x", "json": {}},
        {"data": [5]},
        {"data": object},
        {"json": object},
        {"no_such_argument": 1},
        {"target": 1},
    ],
    ids=str,
)
async def test_bad_arguments_raise_what_aiohttp_raises(options):
    """No argument is touched before aiohttp has seen it."""
    plain, decorated = await both(None, "POST", "http://127.0.0.1:1/", **options)

    assert isinstance(plain, tuple)
    assert plain == decorated


@pytest.mark.parametrize("name", ["base_url", "method"])
async def test_arguments_named_like_ours_are_refused(name):
    """They are type errors in aiohttp as well, if in other words."""
    for kind, _ in await both(None, "GET", "http://127.0.0.1:1/", **{name: "x"}):
        assert kind is TypeError


@pytest.mark.parametrize("method", ["G ET", "GET\n", b"GET"])
async def test_bad_methods_raise_what_aiohttp_raises(method):
    """A method that is none is not retried either."""
    plain, decorated = await both(None, method, "http://127.0.0.1:1/")

    assert plain == decorated
    assert plain[0] in {ValueError, TypeError}
