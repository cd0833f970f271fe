"""What is written into the records of a call, and where its failures come from."""

import asyncio
import gc
import multiprocessing
import re
import weakref
from contextlib import suppress

import aiohttp
import pytest
from calls import (
    REQUEST,
    begin,
    begin_body,
    call_of,
    end,
    function,
    http,
    leave,
    record_of,
)
from chains import (
    URL,
    in_threads,
    notes_of,
    now,
    refused,
    response_of,
    retrying,
    session,
)
from command_line import needs_posix
from multidict import CIMultiDict

from aioretry_smithy import (
    Backoff,
    CircuitBreaker,
    CircuitBreakerClient,
    CircuitState,
    ConcurrencyLimit,
    ConcurrencyLimitingClient,
    DecoratingClient,
    FailFastError,
    RequestLog,
    ResponseTimeoutError,
    RetryingRpcClient,
    RetrySafety,
    RetryStrategy,
    UnprocessedRequestError,
    client_decorator,
    is_unprocessed,
    new_response,
    retry_safety,
    rpc,
)
from aioretry_smithy._call.recorder import (
    begin_after_wait,
    cause_of,
    judge_request,
    note_defaults,
    record_end_of_body,
    record_failed_body,
    record_failure,
    record_return,
)
from aioretry_smithy._call.recorder import end_call as finish
from aioretry_smithy._failures.failure import was_in_pool
from aioretry_smithy._text.mask import Mask
from aioretry_smithy.testing import ScriptedTransport


def answered(call):
    """Let a response arrive whose body is to come, and return what is known of it."""
    begin_body(call)
    return call.outcome


ENDS = {
    "answer": lambda call: end(call, 200),
    "return": lambda call: record_return(call, call),
    "failure": lambda call: record_failure(call, OSError()),
    "body": lambda call: record_end_of_body(call, answered(call)),
    "failed body": lambda call: record_failed_body(call, answered(call), OSError()),
    "call": finish,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
async def test_each_end_wakes_who_waits(end):
    """Once: each waiter looks by itself whether that was what it waits for."""
    woken = []
    call = call_of(begin())
    call.waiters = (lambda: woken.append(call),)
    end(call)

    assert [call] == woken


async def test_body_of_a_response_that_was_replaced_fails_unseen():
    """A decorator has sent once more, and that is the outcome."""
    call = call_of(begin())
    first = answered(call)
    second = answered(call)

    assert not record_failed_body(call, first, OSError())
    assert second.body_ended is None


async def test_headers_of_the_session_are_those_of_the_first_request():
    """Later requests that are sent with others have their own."""
    call = call_of(begin(default_headers=CIMultiDict(A="1")))
    first, second, third = (call.begin_request(REQUEST) for _ in range(3))
    note_defaults(call, first, CIMultiDict(A="2"), REQUEST)
    note_defaults(call, second, CIMultiDict(A="2"), REQUEST)
    note_defaults(call, third, CIMultiDict(A="3"), REQUEST.with_header("B", "4"))

    assert CIMultiDict(A="2") == call.default_headers
    assert [None, None, CIMultiDict(A="3", B="4")] == [
        each.sent_headers for each in call.sent
    ]


async def test_wait_for_what_was_sent_before_is_nobody_s():
    """A decorator sends again within the attempt."""
    call = call_of(begin())
    sent = call.begin_request(REQUEST)
    sent.was_sent = True
    begin_after_wait(call, sent, 1.0)

    assert (None, None) == (call.delay, call.delay_source)
    assert 0.0 == sent.started


async def test_call_that_is_over_keeps_nothing_of_the_caller_s():
    """Of its failures only copies, and the request without its body."""
    request = REQUEST.replace(data=b"body")
    ctx = begin(request)
    call = call_of(ctx)
    cause = call.retry_error = aiohttp.ClientError()
    record_failure(call, cause)
    finish(call)

    assert call.request.options["data"] is None
    assert cause is cause_of(call)
    assert not isinstance(call.retry_error, BaseException)
    assert not isinstance(call.outcome.cause, BaseException)


async def test_id_is_short_text():
    """Random bits of the process, and a number that grows."""
    first, second = begin().log.id, begin().log.id

    assert re.fullmatch(r"[a-z2-7]{8}-[1-9]\d*", first)
    process, number = first.split("-")
    assert f"{process}-{int(number) + 1}" == second


async def test_attempt_has_the_id_of_its_call_with_its_number():
    """Also where it was asked for first."""
    ctx = begin()
    attempts = [ctx.derive(ctx.request).log for _ in range(2)]
    second, first = attempts[1].id, attempts[0].id

    assert [f"{ctx.log.id}.1", f"{ctx.log.id}.2"] == [first, second]
    assert [first, second] == [each["id"] for each in ctx.log.to_dict()["children"]]


async def test_calls_inside_have_ids_of_their_own():
    """They are calls, not attempts."""
    outer = function("fetch")
    attempt = outer.derive(outer.request)
    inner = http("http://example.com/", attempt.log)

    assert inner.log.id.partition(".")[0] != outer.log.id
    assert "." not in inner.log.id
    assert [inner.log.id] == [
        each["id"] for each in outer.log.to_dict()["children"][0]["calls"]
    ]


async def test_call_that_nobody_looks_at_gets_no_id():
    """So it costs nothing."""
    before = begin().log.id
    response = await response_of(session([200]))
    after = RequestLog.of(response).id

    assert int(after.partition("-")[2]) == int(before.partition("-")[2]) + 1


async def test_threads_that_ask_at_once_get_one_id():
    """A line and a span may be written in different threads."""
    log, seen = begin().log, []
    in_threads(lambda: seen.append(log.id))

    assert 1 == len({*seen})


async def test_notes_end_with_the_id_of_their_attempt():
    """An exception leads to the lines of its call."""
    ctx, error = begin(), TimeoutError()
    for _ in range(2):
        attempt = ctx.derive(ctx.request)
        end(attempt, error)
    leave(ctx, error)

    assert [
        f"attempt {number}: TimeoutError, 0.000 s, id={ctx.log.id}.{number}"
        for number in (1, 2)
    ] == error.__notes__
    assert "attempt 1: TimeoutError, 0.000 s" == notes_of(error)[0]


@needs_posix("processes that are forked")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_processes_have_bits_of_their_own():
    """A fork begins anew, with other bits."""

    def ask(answers):
        answers.send([_new_id(), _new_id()])

    ours, theirs = multiprocessing.Pipe()
    before = _new_id()
    child = multiprocessing.get_context("fork").Process(target=ask, args=(theirs,))
    child.start()
    first, second = ours.recv()
    child.join()
    bits, first_number = first.split("-")

    assert bits == second.partition("-")[0]
    assert bits != before.partition("-")[0] == _new_id().partition("-")[0]
    assert "1" == first_number


def _new_id():
    async def ask():
        return begin().log.id

    return asyncio.run(ask())


async def test_call_inside_does_not_keep_the_call_around_it_alive():
    """The log of a call inside, kept alone, keeps nothing of the call around it."""
    outer = begin()
    _inner = begin(inside=outer.log).log
    outer_log = weakref.ref(outer.log)
    gc.disable()
    try:
        del outer

        assert outer_log() is None
    finally:
        gc.enable()


def masking(name, inside=None):
    return begin(mask=Mask((), [name]), inside=inside).log


async def test_secrets_of_a_tree_are_hidden_in_all_of_it():
    """A failure inside is shown around it as well, and each view shows all inside."""
    outer = masking("a")
    middle = masking("b", outer)
    inner = masking("c", middle)
    url = "http://example.com/?a=1&b=2&c=3&d=4"

    assert "http://example.com/?a=****&b=****&c=****&d=4" == outer.mask.text(url)
    assert "http://example.com/?a=****&b=****&c=****&d=4" == middle.mask.text(url)
    assert "http://example.com/?a=****&b=****&c=****&d=4" == inner.mask.text(url)


async def test_mask_stays_where_a_call_inside_hides_no_more():
    """Most calls hide the usual secrets, so that no mask is made for them."""
    outer = begin().log
    before = outer.mask
    begin(inside=outer)
    unchanged = outer.mask
    masking("a", outer)
    after = outer.mask
    masking("a", outer)

    assert before is unchanged
    assert after is outer.mask is not before


BREAKER = CircuitBreaker("orders")
CALL = "calls.pop(0)(*([calls] if calls else []))"


def in_module(module, name, body):
    """Make a function that looks as if it stood in another module."""
    variables = {"__name__": module}
    exec(f"def {name}(calls):\n    {body}", variables)
    return variables[name]


def raised(cause, *functions):
    """Raise an exception in functions that call each other, and catch it."""
    future = asyncio.get_running_loop().create_future()
    future.set_exception(cause)
    # Written in C, so it adds no frame of its own.
    calls = [*functions, future.result]
    with pytest.raises(type(cause)):
        calls.pop(0)(*([calls] if calls else []))
    return cause


ASKING = in_module("aiohttp.client", "_request", f"history = (); req = None; {CALL}")
SENDING = in_module(
    "aiohttp.client", "_request", f"history = (); req = _connect = 1; {CALL}"
)
RENAMED = in_module("aiohttp.client", "_request", f"hops = (); req = 1; {CALL}")
TIMER = in_module("aiohttp.helpers", "__exit__", CALL)
POOL = in_module("aiohttp.connector", "_wait_for_available_connection", CALL)
BODY = [
    SENDING,
    in_module("aiohttp.client_reqrep", "write_bytes", CALL),
    in_module("aiohttp.payload", "write_with_length", CALL),
]
WIRE = in_module("aiohttp.http_writer", "write", CALL)
OTHERS = in_module("shop.orders", "read", CALL)


@pytest.mark.parametrize(
    ("functions", "safety"),
    [
        ([], RetrySafety.MAYBE),
        ([ASKING], RetrySafety.NO),
        ([ASKING, OTHERS], RetrySafety.NO),
        ([ASKING, TIMER], RetrySafety.MAYBE),
        ([SENDING], RetrySafety.MAYBE),
        (BODY, RetrySafety.NO),
        ([*BODY, OTHERS], RetrySafety.NO),
        ([*BODY, OTHERS, WIRE], RetrySafety.NO),
        ([*BODY, WIRE], RetrySafety.MAYBE),
        (BODY[:2], RetrySafety.MAYBE),
    ],
)
async def test_frames_tell_the_caller_from_the_transport(functions, safety):
    """A timeout says by itself nothing about whose it is."""
    cause = raised(TimeoutError(), *functions)
    judge_request(cause, record_of(begin())[1])

    assert safety is retry_safety(cause)


async def test_what_aiohttp_renames_is_taken_for_a_redirect():
    """The safe side: a POST does not go out again."""
    cause = raised(aiohttp.ConnectionTimeoutError(), RENAMED)
    judge_request(cause, record_of(begin())[1])

    assert not is_unprocessed(cause)


class Refusing(DecoratingClient):
    """Refuses each second request."""

    refuses = False

    async def execute(self, ctx, request):
        self.refuses = not self.refuses
        if not self.refuses:
            raise UnprocessedRequestError("no place")
        return await self.delegate.execute(ctx, request)


@client_decorator
async def insistent(delegate, ctx, request):
    """Send again whatever came of it."""
    with suppress(aiohttp.ClientError, TimeoutError):
        (await delegate.execute(ctx, request)).close()
    return await delegate.execute(ctx, request)


@pytest.mark.parametrize("clients", [(), (retrying(RetryStrategy.never()),)])
@pytest.mark.parametrize("inside", [(), (Refusing,)], ids=["transport", "decorator"])
@pytest.mark.parametrize(
    ("earlier", "unprocessed"),
    [
        (401, False),
        (TimeoutError(), False),
        (aiohttp.ServerDisconnectedError(), False),
        (refused(), True),
        (UnprocessedRequestError(), True),
    ],
)
async def test_an_earlier_send_in_the_same_attempt_counts(
    earlier, unprocessed, inside, clients
):
    """Refused twice is unprocessed; what the server may have seen once is not."""
    answers = [earlier, UnprocessedRequestError("no place")]
    async with session(answers, *inside, insistent, *clients) as client:
        with pytest.raises(UnprocessedRequestError) as caught:
            await client.post(URL)

    assert unprocessed is is_unprocessed(caught.value)


@pytest.mark.parametrize(
    ("earlier", "attempts"),
    [(ValueError(), 1), (UnprocessedRequestError(), 2), (FailFastError(BREAKER), 2)],
)
async def test_attempts_that_a_decorator_makes_of_a_function(earlier, attempts):
    """What the function did in the first of them is not known to be nothing."""
    failures = [earlier, UnprocessedRequestError("no place")] * 2

    @client_decorator
    async def derive(delegate, ctx, request):
        with suppress(type(earlier)):
            await delegate.execute(ctx.derive(request), request)
        return await delegate.execute(ctx.derive(request), request)

    strategy = RetryStrategy.on_unprocessed(Backoff.without_delay())

    @rpc(derive, RetryingRpcClient.new_decorator(strategy, 2))
    async def operation():
        raise failures.pop(0)

    with pytest.raises(UnprocessedRequestError) as caught:
        await operation()

    assert 2 * attempts == 4 - len(failures)
    assert (attempts == 2) is is_unprocessed(caught.value)


@pytest.mark.parametrize("clients", [(), (retrying(RetryStrategy.failsafe()),)])
async def test_deadline_that_passes_in_a_queue_after_a_send(clients):
    """The server has seen the request that went out before the wait."""
    limit = ConcurrencyLimit.fixed(1)

    @client_decorator
    async def hold(delegate, ctx, request):
        """Keep the place as a body under way does."""
        response = await delegate.execute(ctx, request)
        limit._try_enter(now())
        return response

    limiting = ConcurrencyLimitingClient.new_decorator(limit, timeout=None)
    transport = ScriptedTransport([401, 401])
    chain = limiting, hold, insistent, *clients
    async with session(transport, *chain, timeout=5.0) as client:
        with pytest.raises(ResponseTimeoutError) as caught:
            await client.post(URL)

    assert 1 == len(transport.requests)
    assert not is_unprocessed(caught.value)


async def test_what_stood_in_for_the_server_was_no_send():
    """The answer of a fallback proves nothing; this request reached nobody."""
    breaker = CircuitBreaker()
    breaker.enter_state(CircuitState.FORCED_OPEN)
    answers = iter([401, refused()])

    def fallback(ctx, request):
        answer = next(answers)
        if isinstance(answer, int):
            return new_response(request, answer)
        raise answer

    guarded = CircuitBreakerClient.new_decorator(breaker, fallback=fallback)
    async with session([], guarded, insistent) as client:
        with pytest.raises(aiohttp.ClientConnectorError) as caught:
            await client.post(URL)

    assert is_unprocessed(caught.value)


async def test_wait_of_an_earlier_request_is_not_this_one_s():
    """The context may be the failure of another request, which went elsewhere."""
    earlier = raised(TimeoutError(), ASKING, POOL)
    later = raised(TimeoutError(), SENDING)
    later.__context__ = earlier
    for cause in (earlier, later):
        judge_request(cause, record_of(begin())[1])

    assert was_in_pool(earlier)
    assert not was_in_pool(later)


@pytest.mark.parametrize("was_sent", [True, False])
async def test_request_that_was_sent_stays_sent(was_sent):
    """A failure before anything went out does not take that back."""
    call = record_of(begin())[0]
    call.was_sent = was_sent
    judge_request(UnprocessedRequestError("full"), call)

    assert was_sent is call.was_sent
