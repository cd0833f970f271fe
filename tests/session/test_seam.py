"""The seam into aiohttp: what it is called with, and what stays as aiohttp has it."""

from __future__ import annotations

import asyncio
import math
from typing import NamedTuple

import aiohttp
import pytest
from aiohttp import ClientTimeout
from yarl import URL

from aioretry_smithy import (
    AttemptTimeoutError,
    Backoff,
    ClientRequestContext,
    DecoratingClient,
    HttpRequest,
    RequestLog,
    ResponseTimeoutError,
    ResponseTimeoutMode,
    RetryingClient,
    RetryStopReason,
    RetryStrategy,
    SessionBuilder,
    UnprocessedRequestError,
    capture_logs,
    client_decorator,
    decorate,
    is_unprocessed,
    new_response,
)
from aioretry_smithy._bodies.request_body import ReplayablePayload

EXACT = math.inf


class Call(NamedTuple):
    at: float
    method: str
    url: object
    options: dict


class Recorder:
    """Stands in for ``ClientSession._request`` and answers from a list."""

    def __init__(self):
        self.calls = []
        self.answers = []
        self.takes = 0.0

    async def __call__(self, session, method, url, **options):
        loop = asyncio.get_running_loop()
        self.calls.append(Call(loop.time(), method, url, options))
        if isinstance(options.get("data"), ReplayablePayload):
            options["data"].start()
        await asyncio.sleep(self.takes)
        answer = self.answers.pop(0) if self.answers else 200
        if isinstance(answer, BaseException):
            raise answer
        return new_response(HttpRequest(method, URL(url)), answer)

    @property
    def options(self):
        return [call.options for call in self.calls]

    @property
    def timeouts(self):
        return [options.get("timeout") for options in self.options]


@pytest.fixture
def wire(monkeypatch):
    recorder = Recorder()

    async def _request(self, method, url, **options):
        return await recorder(self, method, url, **options)

    monkeypatch.setattr(aiohttp.ClientSession, "_request", _request)
    return recorder


def retrying(delay=1.0, **settings):
    strategy = RetryStrategy.on_server_error_status(Backoff.fixed(delay))
    return RetryingClient.new_decorator(strategy, **settings)


def pausing(seconds):
    @client_decorator
    async def pause(delegate, ctx, request):
        await asyncio.sleep(seconds)
        return await delegate.execute(ctx, request)

    return pause


def changing(change):
    """Make a decorator that changes the context, or the request by returning one."""

    @client_decorator
    async def decorator(delegate, ctx, request):
        return await delegate.execute(ctx, change(ctx, request) or request)

    return decorator


async def get(*decorators, session_timeout=None, **options):
    arguments = {} if session_timeout is None else {"timeout": session_timeout}
    builder = SessionBuilder("http://h", **arguments)
    for decorator in decorators:
        builder.decorator(decorator)
    async with builder.build() as session:
        return await session.request("GET", "/", **options)


def exact(total, **limits):
    return ClientTimeout(total=total, ceil_threshold=EXACT, **limits)


# Arguments


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
@pytest.mark.parametrize("decorators", [[], [DecoratingClient], [retrying()]])
async def test_first_attempt_injects_nothing(wire, decorators, options):
    """What aiohttp gets is what the caller gave, object for object."""
    await get(*decorators, **options)
    call = wire.calls[0]

    assert ("GET", "/") == (call.method, call.url)
    assert options == call.options
    assert all(options[name] is call.options[name] for name in options)


async def test_url_is_passed_as_it_was_given(wire):
    """Joining with the base is aiohttp's; a URL object stays that object."""
    url = URL("http://other/a")
    async with SessionBuilder("http://h").build() as session:
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

    assert ("PUT", "/b") == (call.method, call.url)
    assert {"headers": {"A": "1"}, "data": b"x", "params": None} == call.options


async def test_class_is_looked_up_when_called(monkeypatch):
    """A mock that patches the class after the session was built is in effect."""
    async with SessionBuilder().build() as session:
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
    await get(retrying(), upload_tracker=tracker)

    assert [tracker, None, None] == [o["upload_tracker"] for o in wire.options]


async def test_no_upload_tracker_is_no_body(wire):
    """An explicit None for it is not taken for something that was used up."""
    wire.answers = [503, 200]
    response = await get(retrying(), upload_tracker=None)

    assert 200 == response.status


# The deadline


async def test_session_has_the_deadline(wire):
    """The second attempt gets what the first one and the wait have left over."""
    wire.takes, wire.answers = 2.0, [503, 503, 200]
    await get(retrying(), session_timeout=ClientTimeout(total=10.0))

    assert [0.0, 3.0, 6.0] == [call.at for call in wire.calls]
    assert [None, exact(7.0), exact(4.0)] == wire.timeouts


async def test_default_is_that_of_aiohttp(wire):
    """Without any setting a call has 300 seconds, and the other limits stay."""
    wire.answers = [503]
    await get(retrying(10.0))

    assert [None, exact(290.0, sock_connect=30)] == wire.timeouts


@pytest.mark.parametrize("limit", [10, ClientTimeout(total=10)])
async def test_request_has_the_deadline(wire, limit):
    """A request's own limit replaces the session's, larger or smaller."""
    wire.answers = [503]
    await get(retrying(), session_timeout=ClientTimeout(total=5.0), timeout=limit)

    assert [limit, exact(9.0)] == wire.timeouts


async def test_other_limits_of_the_request_survive(wire):
    """What the caller said about sockets holds for every attempt."""
    limits = {"connect": 1.0, "sock_read": 2.0, "sock_connect": 3.0}
    wire.answers = [503]
    await get(retrying(), timeout=ClientTimeout(total=10.0, **limits))

    assert exact(9.0, **limits) == wire.timeouts[1]


@pytest.mark.parametrize(
    "given", [None, 0, -1, ClientTimeout(total=0), ClientTimeout(total=-1)], ids=str
)
async def test_no_limit_is_no_limit(wire, given):
    """None and, as in aiohttp, zero lift the session's limit for all attempts."""
    contexts = []
    look = changing(lambda ctx, request: contexts.append(ctx))
    wire.answers, wire.takes = [503, 503], 500.0
    session_timeout = ClientTimeout(total=10.0)
    await get(look, retrying(), session_timeout=session_timeout, timeout=given)

    assert [given] * 3 == wire.timeouts
    assert [None] * 3 == [ctx.deadline for ctx in contexts]


@pytest.mark.parametrize("total", [None, 0, -5.0])
async def test_session_without_a_limit(wire, total):
    """What the session does not limit nobody limits."""
    wire.answers = [503]
    await get(retrying(), session_timeout=ClientTimeout(total=total))

    assert [{}, {"headers": {"armeria-retry-count": "1"}}] == wire.options


@pytest.mark.parametrize(
    ("gone", "injected"), [(0.0, None), (0.01, None), (0.0101, exact(9.9899))]
)
async def test_ten_milliseconds_do_not_count(wire, gone, injected):
    """Mocks compare arguments, so nothing is injected for next to nothing."""
    await get(pausing(gone), session_timeout=ClientTimeout(total=10.0))

    assert [injected] == wire.timeouts


@pytest.mark.parametrize("decorators", [(), (retrying(attempt_timeout=2.0),)])
@pytest.mark.parametrize("given", ["5", object(), [5], ClientTimeout(total="5")])
async def test_timeout_that_is_none_is_for_aiohttp_to_refuse(wire, given, decorators):
    """It arrives as it was given, also where attempts have a timeout of their own."""
    await get(*decorators, timeout=given)

    assert given is wire.options[0]["timeout"]


async def test_deadline_passed_before_sending(wire):
    """Nothing is sent when no time is left, and the log says so."""
    with capture_logs() as logs, pytest.raises(ResponseTimeoutError) as caught:
        await get(pausing(11.0), session_timeout=ClientTimeout(total=10.0))

    assert [] == wire.calls
    assert caught.value is logs[0].response_cause
    assert (11.0, True) == (logs[0].duration, logs[0].is_complete)


async def test_attempt_timeout_passed_before_sending(wire):
    """An attempt that was held up too long fails, and another one is made."""
    pauses = [3.0, 0.0]
    held_up = client_decorator(lambda delegate, ctx, request: wait(delegate, ctx))

    async def wait(delegate, ctx):
        await asyncio.sleep(pauses.pop(0))
        return await delegate.execute(ctx, ctx.request)

    response = await get(held_up, retrying(attempt_timeout=2.0))
    log = RequestLog.of(response)

    assert [4.0] == [call.at for call in wire.calls]
    assert type(log.children[0].response_cause) is AttemptTimeoutError
    assert 200 == log.response_status


async def test_body_that_was_not_sent_can_be_sent(wire):
    """An attempt that ended before sending has not used the body up."""

    async def body():
        yield b"abc"

    pauses = [3.0, 0.0]

    @client_decorator
    async def hold_up(delegate, ctx, request):
        await asyncio.sleep(pauses.pop(0))
        return await delegate.execute(ctx, request)

    response = await get(hold_up, retrying(attempt_timeout=2.0), data=body())

    assert 200 == response.status
    assert 1 == len(wire.calls)


# The timeout of an attempt


async def test_attempt_timeout_is_the_total(wire):
    """Each attempt gets its own time, but no more than the call has left."""
    wire.takes, wire.answers = 2.0, [503] * 9
    limits = {"sock_read": 1.5, "sock_connect": 30}
    session_timeout = ClientTimeout(total=10.0, **limits)
    await get(retrying(attempt_timeout=3.0), session_timeout=session_timeout)

    assert [0.0, 3.0, 6.0, 9.0] == [call.at for call in wire.calls]
    assert [exact(total, **limits) for total in (3.0, 3.0, 3.0, 1.0)] == wire.timeouts


async def test_attempt_timeout_of_a_request_without_limit(wire):
    """Lifting the call's limit does not lift that of its attempts."""
    wire.answers = [503]
    await get(retrying(attempt_timeout=3.0), timeout=None)

    assert [exact(3.0)] * 2 == wire.timeouts


async def test_attempt_timeout_where_the_request_is_stricter(wire):
    """The smaller of the two holds, so aiohttp's own is left in place."""
    await get(retrying(attempt_timeout=30.0), timeout=5.0)

    assert [5.0] == wire.timeouts


async def test_timeout_that_a_decorator_put_in(wire):
    """A decorator's own limit of one attempt holds, within that of the call."""
    shorter = changing(lambda ctx, request: request.replace(timeout=2.0))
    longer = changing(
        lambda ctx, request: request.replace(timeout=ClientTimeout(99.0, sock_read=1.0))
    )
    none = changing(lambda ctx, request: request.replace(timeout=None))
    for decorator in (shorter, longer, none):
        await get(decorator, session_timeout=ClientTimeout(total=10.0))

    assert [2.0, exact(10.0, sock_read=1.0), exact(10.0)] == wire.timeouts


# Moved deadlines

NOW, START, EXTEND = ResponseTimeoutMode


@pytest.mark.parametrize(
    ("seconds", "mode", "injected"),
    [
        (3.0, NOW, exact(3.0)),
        (20.0, NOW, exact(20.0)),
        (3.0, START, exact(1.0)),
        (20.0, START, exact(18.0)),
        (5.0, EXTEND, exact(13.0)),
        (-5.0, EXTEND, exact(3.0)),
        (2.0, EXTEND, None),
    ],
)
async def test_moved_deadline_of_a_call(wire, seconds, mode, injected):
    """Two seconds into a call of ten, aiohttp gets what is left by then."""
    move = changing(lambda ctx, request: ctx.set_response_timeout(seconds, mode))
    await get(move, pausing(2.0), session_timeout=ClientTimeout(total=10.0))

    assert [injected] == wire.timeouts


@pytest.mark.parametrize(
    ("seconds", "mode", "timeouts"),
    [
        (2.0, NOW, [exact(2.0)] * 2),
        (5.0, NOW, [exact(5.0)] * 2),
        (99.0, NOW, [None, exact(9.0)]),
        (2.0, START, [exact(2.0)] * 2),
        (1.0, EXTEND, [exact(4.0)] * 2),
    ],
)
async def test_moved_deadline_of_an_attempt(wire, seconds, mode, timeouts):
    """Inside the retrying client only that attempt is moved, within the call."""
    wire.answers = [503]
    move = changing(lambda ctx, request: ctx.set_response_timeout(seconds, mode))
    retry = retrying(attempt_timeout=3.0)
    await get(move, retry, session_timeout=ClientTimeout(total=10.0))

    assert timeouts == wire.timeouts


async def test_cleared_deadline_of_a_call(wire):
    """A call without a deadline has to lift aiohttp's own."""
    clear = changing(lambda ctx, request: ctx.clear_response_timeout())
    limits = {"sock_read": 2.0}
    await get(clear, session_timeout=ClientTimeout(total=10.0, **limits))

    assert [exact(None, **limits)] == wire.timeouts


async def test_cleared_deadline_of_an_attempt(wire):
    """The attempt has as long as its call."""
    clear = changing(lambda ctx, request: ctx.clear_response_timeout())
    retry = retrying(attempt_timeout=3.0)
    await get(clear, retry, session_timeout=ClientTimeout(total=10.0))

    assert [None] == wire.timeouts


async def test_deadline_moved_from_inside_an_attempt(wire):
    """An attempt may move the deadline of the whole call, through its root."""
    wire.answers = [503]
    move = changing(lambda ctx, request: ctx.root.set_response_timeout(50.0, START))
    await get(move, retrying(), session_timeout=ClientTimeout(total=10.0))

    assert [exact(50.0), exact(49.0)] == wire.timeouts


# raise_for_status


async def refuse_with_value_error(response):
    if response.status == 404:
        raise ValueError(await response.text())


async def let_pass(response):
    await response.read()


def refusing(of_session):
    builder = SessionBuilder("http://h", raise_for_status=of_session)
    return builder.decorator(retrying()).build()


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
    """What the request or the callable lets pass is a response like any other."""
    wire.answers = [503, 404]
    async with refusing(of_session) as session:
        response = await session.get("/", **of_request)

    assert 404 == response.status
    assert RequestLog.of(response).response_cause is None
    assert not any(options.get("raise_for_status") for options in wire.options)


async def test_good_response_is_not_refused(wire):
    """Success is success, with every setting."""
    for refuse in (True, refuse_with_value_error):
        response = await get(retrying(), raise_for_status=refuse)

        assert 200 == response.status


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
    """Who is cancelled in a callable of his own leaves a finished log behind."""

    async def refuse(response):
        await asyncio.sleep(10.0)

    with capture_logs() as logs:
        call = asyncio.create_task(get(retrying(), raise_for_status=refuse))
        await asyncio.sleep(1.0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    assert logs[0].is_complete
    assert isinstance(logs[0].response_cause, asyncio.CancelledError)


# Bodies


class TwiceClient(DecoratingClient):
    """Calls its delegate twice, as a naive cache or a naive login would."""

    async def execute(self, ctx, request):
        response = await self.delegate.execute(ctx, request)
        response.release()
        return await self.delegate.execute(ctx, request)


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
    response = await get(retrying(), data=make())

    assert 1 == len(wire.calls)
    assert 503 == response.status
    assert RetryStopReason.BODY_NOT_REPLAYABLE == RequestLog.of(response).stop_reason


@pytest.mark.parametrize("make", ONE_SHOT)
async def test_delegate_called_twice_does_not_send_a_read_body(wire, make):
    """Better refused than sent short; the server has seen the first one."""
    with capture_logs() as logs, pytest.raises(UnprocessedRequestError) as caught:
        await get(TwiceClient, data=make())

    assert 1 == len(wire.calls)
    assert not is_unprocessed(caught.value)
    assert caught.value is logs[0].response_cause


async def test_delegate_called_twice_with_a_plain_body(wire):
    """What can go out twice does."""
    response = await get(TwiceClient, data=b"abc")

    assert 200 == response.status
    assert [b"abc"] * 2 == [options["data"] for options in wire.options]


async def test_refused_body_is_not_tried_over_and_over(wire):
    """Inside a retrying client the refusal ends the call too."""
    with pytest.raises(UnprocessedRequestError) as caught:
        await get(TwiceClient, retrying(), data=chunks())
    log = RequestLog.of(caught.value)

    assert (1, 1) == (len(wire.calls), log.total_attempts)
    assert RetryStopReason.BODY_NOT_REPLAYABLE == log.stop_reason


# The log


async def test_headers_of_the_session_are_in_the_log(wire):
    """They go out, so they are shown, although nothing merges them into the request."""
    seen = []
    look = changing(lambda ctx, request: seen.append(dict(ctx.log.request_headers)))
    builder = SessionBuilder("http://h", headers={"A": "0", "B": "0"}).decorator(look)
    async with builder.build() as session:
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
        await get(look, retrying(max_total_attempts=2))

    assert [True, True] == seen


async def test_response_is_in_the_log_when_it_is_returned(wire):
    """A decorator reads the status off the log as well as off the response."""
    seen = []

    @client_decorator
    async def look(delegate, ctx, request):
        response = await delegate.execute(ctx, request)
        seen.append(ctx.log.response_status)
        return response

    wire.answers = [503]
    await get(look, retrying(), look)

    assert [503, 200, 200] == seen


@pytest.mark.parametrize("decorators", [[], [retrying()]], ids=["plain", "retrying"])
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
    """A client that somebody kept from a description cannot send anything."""
    clients = []
    builder = SessionBuilder().decorator(clients.append)
    with pytest.raises(ValueError, match="one that returns an HttpClient"):
        builder.describe()
    request = HttpRequest("GET", "http://h/")

    with pytest.raises(RuntimeError, match=r"^Session is closed$"):
        await clients[0].execute(ClientRequestContext(request), request)


# Errors that are aiohttp's


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
    for decorators in ([], [DecoratingClient, retrying()]):
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


async def test_closed_session_raises_what_aiohttp_raises():
    """A closed session is the caller's mistake, at the first attempt."""
    session = SessionBuilder().decorator(retrying()).build()
    await session.close()

    with (
        capture_logs() as logs,
        pytest.raises(RuntimeError, match=r"^Session is closed$"),
    ):
        await session.get("http://127.0.0.1:1/")

    assert 1 == logs[0].total_attempts
    assert RetryStopReason.NO_RETRY == logs[0].stop_reason
