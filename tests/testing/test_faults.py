"""Faults on purpose, the requests that they strike, and what views say of them."""

import asyncio
import json

import aiohttp
import pytest
from calls import begin
from chains import SAFELY, URL, connected, log_of, now, refused, retrying, session

from aioretry_smithy import (
    AttemptTimeoutError,
    CircuitBreaker,
    CircuitBreakerClient,
    FailFastError,
    HttpRequest,
    LogFormatter,
    LoggingClient,
    RequestLog,
    ResponseTimeoutError,
    SessionBuilder,
    client_decorator,
    new_response,
    unwrap,
)
from aioretry_smithy.testing import (
    FaultInjectingClient,
    InjectedFault,
    ScriptedTransport,
)

injecting = FaultInjectingClient.new_decorator


def sequence(*numbers):
    """Return numbers one after the other, in place of chance."""
    return iter(numbers).__next__


def is_write(request):
    return request.method == "POST"


async def statuses(decorator, many):
    """Return the statuses of so many calls to a server that is well."""
    async with session([200] * many, decorator) as client:
        return [(await client.get(URL)).status for _ in range(many)]


async def failure_of(client, **options):
    """Make the call of a session that fails; return the failure, and when it came."""
    async with client:
        with pytest.raises((aiohttp.ClientError, TimeoutError)) as caught:
            await client.get(URL, **options)
    return caught.value, now()


class TestStatus:
    """An answer in place of the server's."""

    async def test_answer_is_a_response_that_was_not_sent(self):
        """It has the status, the headers and the body, and nothing reaches a server."""
        transport = ScriptedTransport([])
        fault = InjectedFault.status(503, headers={"Retry-After": "7"}, body={"a": 1})
        async with session(transport, injecting(fault)) as client:
            response = await client.get(URL)
            log = RequestLog.of(response)

            assert (503, "7") == (response.status, response.headers["Retry-After"])
            assert {"a": 1} == await response.json()
            assert (False, 503) == (log.sent, log.response_status)
            assert [] == transport.requests
            assert "503 Service Unavailable, injected" in log.render()

    async def test_answer_is_met_like_one_of_a_server(self):
        """Retries wait as long as it says, and circuit breakers count it."""
        faults = injecting(InjectedFault.status(503, headers={"Retry-After": "7"}))
        breaker = CircuitBreaker(minimum_request_threshold=2)
        breaking = CircuitBreakerClient.new_decorator(breaker)
        log = await log_of(session([], faults, breaking, retrying(SAFELY)))
        first, second, third = log.children
        headline, *rows = log.render().splitlines()

        assert [503, 503] == [first.response_status, second.response_status]
        assert [7.0, 7.0] == [first.delay, second.delay]
        assert FailFastError is type(third.response_cause)
        assert [True, True, False] == [each.injected for each in log.children]
        assert not log.injected
        assert ", not sent" in headline
        assert ", not sent" in rows[-1]


class TestError:
    """A failure in place of an answer."""

    @pytest.mark.parametrize(
        "error",
        [aiohttp.ServerDisconnectedError, ConnectionResetError(104, "reset by peer")],
    )
    async def test_failure_is_raised_for_a_request_that_was_not_sent(self, error):
        """A class is as good as an exception."""
        kind = error if isinstance(error, type) else type(error)
        async with session([], injecting(InjectedFault.error(error))) as client:
            with pytest.raises(kind) as caught:
                await client.get(URL)

        log = RequestLog.of(caught.value)
        assert (False, repr(caught.value)) == (log.sent, repr(log.response_cause))

    async def test_each_request_gets_an_exception_of_its_own(self):
        """Notes, log and traceback of one are not on the next."""
        given = aiohttp.ClientPayloadError("half")
        raised = []
        async with session([], injecting(InjectedFault.error(given))) as client:
            for _ in range(2):
                with pytest.raises(aiohttp.ClientPayloadError, match="half") as caught:
                    await client.get(URL)
                raised.append(caught.value)

        assert 3 == len({*map(id, [given, *raised])})
        assert None is given.__traceback__


class TestLatency:
    """A wait before the request goes on."""

    @pytest.mark.parametrize(("seconds", "waited"), [(0.5, 0.5), ((1.0, 3.0), 1.5)])
    async def test_request_waits_and_goes_on(self, seconds, waited):
        """Between the least and the most seconds, by chance; then it is sent."""
        latency = InjectedFault.latency(seconds)
        faults = injecting(latency, random=sequence(0.0, 0.25))
        log = await log_of(session([200], faults))

        assert (200, True, waited) == (log.response_status, log.sent, log.duration)
        assert not log.injected

    async def test_waits_add_up_and_the_first_other_fault_decides(self):
        """A wait after it is not looked at, so the request waits no longer."""
        faults = injecting(
            InjectedFault.latency(1.0),
            InjectedFault.latency(2.0),
            InjectedFault.status(503),
            InjectedFault.latency(4.0),
            InjectedFault.status(500),
        )
        log = await log_of(session([], faults))

        assert (503, 3.0) == (log.response_status, log.duration)

    async def test_deadline_cuts_a_wait(self):
        """The deadline of the attempt does, and the attempt is made again."""
        faults = injecting(InjectedFault.latency(5.0), random=sequence(0.0, 0.0, 1.0))
        retries = retrying(SAFELY, attempt_timeout=2.0)
        log = await log_of(session([200], faults, retries))
        first, second = log.children

        assert AttemptTimeoutError is type(first.response_cause)
        assert (2.0, False) == (first.duration, first.sent)
        assert 200 == second.response_status


class TestHang:
    """No answer at all."""

    @pytest.mark.parametrize(
        ("settings", "options", "kind", "seconds"),
        [
            ({"total": 3.0}, None, ResponseTimeoutError, 3.0),
            ({"total": 3.0, "sock_read": 2.0}, None, aiohttp.SocketTimeoutError, 2.0),
            ({"sock_read": 2.0}, {"total": 4.0}, ResponseTimeoutError, 4.0),
            ({"total": 3.0}, {"sock_read": 1.0}, aiohttp.SocketTimeoutError, 1.0),
        ],
    )
    async def test_time_limits_end_it(self, settings, options, kind, seconds):
        """The limits that would end a wait for a real server do."""
        faults = injecting(InjectedFault.hang())
        client = connected(None, faults, timeout=aiohttp.ClientTimeout(**settings))
        own = {"timeout": aiohttp.ClientTimeout(**options)} if options else {}
        failure, ended = await failure_of(client, **own)

        assert (kind, seconds) == (type(failure), ended)
        assert False is RequestLog.of(failure).sent

    async def test_without_a_limit_it_hangs_until_it_is_cancelled(self):
        """Nothing else ends it."""
        async with session([], injecting(InjectedFault.hang()), timeout=1e6) as client:
            call = asyncio.create_task(client.get(URL, timeout=None))
            await asyncio.sleep(1e7)
            is_over = call.done()
            call.cancel()

            assert not is_over
            with pytest.raises(asyncio.CancelledError):
                await call

    async def test_limit_that_was_moved_meanwhile_still_is_a_timeout(self):
        """A request keeps the deadline that it began with."""
        request = HttpRequest("GET", URL)
        ctx = begin(request, timeout=1.0)
        client = injecting(InjectedFault.hang())(ScriptedTransport([]))
        call = asyncio.create_task(client.execute(ctx, request))
        await asyncio.sleep(0.5)
        ctx.set_response_timeout(10.0)

        with pytest.raises(TimeoutError):
            await call
        assert 1.0 == now()


class TestChoice:
    """Which requests are struck."""

    async def test_rate_is_the_part_that_is_struck(self):
        """A number below the rate strikes, the rate itself does not."""
        faults = injecting(
            InjectedFault.status(503, rate=0.3), random=sequence(0.0, 0.29, 0.3, 0.9)
        )

        assert [503, 503, 200, 200] == await statuses(faults, 4)

    async def test_filter_leaves_requests_alone(self):
        """Each fault has its own, and draws no number for a request left alone."""
        faults = injecting(
            InjectedFault.status(503, request_filter=is_write), random=sequence(0.0)
        )
        async with session([200], faults) as client:
            read = await client.get(URL)
            write = await client.post(URL)

        assert [200, 503] == [read.status, write.status]

    async def test_function_switches_it_per_request(self):
        """It is asked with the context and the request."""
        faults = injecting(
            InjectedFault.status(503),
            enabled=lambda ctx, request: ctx.attempt < 3 and request.method == "GET",
        )
        log = await log_of(session([200], faults, retrying(0.0)))

        assert [503, 503, 200] == [each.response_status for each in log.children]

    async def test_disabled_it_is_not_there(self):
        """The chain is as if it had never been added."""
        faults = injecting(InjectedFault.status(503), enabled=False)
        transport = ScriptedTransport([200])

        assert transport is faults(transport)
        async with session(transport, faults) as client:
            assert None is unwrap(client, FaultInjectingClient)
            assert 200 == (await client.get(URL)).status


class TestCutBody:
    """A body that ends too soon."""

    @pytest.mark.parametrize("after", [0, 1, 3])
    async def test_body_fails_after_so_many_bytes(self, after):
        """They arrive, then reading fails each time, and the log knows."""
        faults = injecting(InjectedFault.cut_body(after=after))
        async with session([(200, b"orders")], faults) as client:
            response = await client.get(URL)
            log = RequestLog.of(response)
            seen = await response.content.readexactly(after)
            with pytest.raises(aiohttp.ClientPayloadError) as caught:
                await response.content.read(2)
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()

        assert b"orders"[:after] == seen
        assert f"cut off after {after} bytes" in str(caught.value)
        assert (200, after) == (log.response_status, log.response_length)
        assert (True, True) == (log.injected, log.sent)
        assert ", injected" in log.render()
        assert aiohttp.ClientPayloadError is type(log.response_cause)

    @pytest.mark.parametrize("after", [6, 7])
    async def test_body_that_is_no_longer_comes_whole(self, after):
        """Nothing is missing, so nothing fails."""
        faults = injecting(InjectedFault.cut_body(after=after))
        async with session([(200, b"orders")], faults) as client:
            response = await client.get(URL)

            assert b"orders" == await response.read()
            assert None is RequestLog.of(response).response_cause

    async def test_retrying_client_that_reads_bodies_asks_again(self):
        """A cut body is a failed attempt to it, and the next one comes whole."""
        cut = InjectedFault.cut_body(after=3, rate=0.5)
        faults = injecting(cut, random=sequence(0.0, 0.9))
        retries = retrying(SAFELY, buffer_response=True)
        async with session([(200, b"orders")] * 2, faults, retries) as client:
            response = await client.get(URL)
            first, second = RequestLog.of(response).children

            assert b"orders" == await response.read()
            assert aiohttp.ClientPayloadError is type(first.response_cause)
            assert None is second.response_cause


class TestWords:
    """Descriptions of the client and its faults, and bad arguments."""

    def test_description_has_the_faults(self):
        """As they would be written, but for bodies and headers."""
        decorator = injecting(
            InjectedFault.latency((0.1, 0.5)),
            InjectedFault.status(503, rate=0.1, headers={"Token": "s"}, body=b"secret"),
            InjectedFault.error(TimeoutError("late"), request_filter=is_write),
            InjectedFault.cut_body(after=10, rate=0.5),
            InjectedFault.hang(),
            enabled=lambda ctx, request: True,
        )
        line = SessionBuilder().decorator(decorator).describe().splitlines()[0]

        assert line.startswith(
            "FaultInjectingClient(InjectedFault.latency((0.1, 0.5), rate=1.0), "
            "InjectedFault.status(503, rate=0.1), "
            "InjectedFault.error(TimeoutError('late'), rate=1.0, "
            "request_filter=is_write), "
            "InjectedFault.cut_body(after=10, rate=0.5), "
            "InjectedFault.hang(rate=1.0), enabled=TestWords."
        )

    def test_description_does_not_say_that_it_is_enabled(self):
        """That goes without saying."""
        line = SessionBuilder().decorator(injecting()).describe().splitlines()[0]

        assert "FaultInjectingClient()" == line

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: injecting(503), r"faults\[0\]: 503 .*an InjectedFault, such as"),
            (lambda: injecting(InjectedFault.hang), r"faults\[0\]: <.*InjectedFault,"),
            (lambda: injecting(random=0.5), "random: 0.5 .*a function that returns"),
            (lambda: injecting(enabled=1), "enabled: 1 .*True, False, or a plain"),
            (lambda: InjectedFault.hang(rate=1.1), "rate: 1.1 .*>= 0 and <= 1"),
            (lambda: InjectedFault.hang(rate=True), "rate: True"),
            (lambda: InjectedFault.hang(request_filter=1), "request_filter: 1 .*plain"),
            (lambda: InjectedFault.status(42), "status: 42 .*from 100 to 999"),
            (lambda: InjectedFault.status("503"), "status: '503' .*from 100 to 999"),
            (lambda: InjectedFault.status(True), "status: True .*from 100 to 999"),
            (
                lambda: InjectedFault.status(503, headers={"Retry-After": 1}),
                "headers: {'Retry-After': 1} .*a mapping of str to str, or None",
            ),
            (lambda: InjectedFault.status(503, headers=[]), r"headers: \[\] "),
            (lambda: InjectedFault.status(503, body=7), "body: 7 .*a body of bytes"),
            (lambda: InjectedFault.error("late"), "error: 'late' .*an exception, or a"),
            (lambda: InjectedFault.error(KeyboardInterrupt), "error: <class 'Keyb"),
            (
                lambda: InjectedFault.error(aiohttp.ClientResponseError),
                "error: <class 'aiohttp.* that needs no argument",
            ),
            (lambda: InjectedFault.latency(-1), "seconds: -1 .*finite and >= 0"),
            (lambda: InjectedFault.latency((2, 1)), r"seconds: \(2, 1\) .*a pair"),
            (lambda: InjectedFault.latency((1,)), r"seconds: \(1,\) .*a pair"),
            (lambda: InjectedFault.latency(float("inf")), "seconds: inf"),
            (lambda: InjectedFault.cut_body(after=-1), "after: -1 .*an int >= 0"),
            (lambda: InjectedFault.cut_body(after=0.5), "after: 0.5 .*an int >= 0"),
        ],
    )
    def test_bad_argument_is_refused_at_once(self, make, message):
        """The error names it, and says what to write instead."""
        with pytest.raises(ValueError, match=f"^{message}"):
            make()


async def test_response_that_cannot_be_cut_is_closed(caplog):
    """One of a user's own class, without a body; the lines say what failed."""
    closed = []

    class Answer:
        status, headers = 200, {}

        def close(self):
            closed.append(self)

    async def answer(delegate, ctx, request):
        return Answer()

    cut = injecting(InjectedFault.cut_body(after=1))
    added = client_decorator(answer), cut, LoggingClient.new_decorator()
    async with session([], *added) as client:
        with pytest.raises(AttributeError, match="content"):
            await client.get(URL)

    assert 1 == len(closed)
    assert "cause=AttributeError" in caplog.messages[-1]


TEXT = LogFormatter.text()
FAULTS = {
    "status": InjectedFault.status(503),
    "error": InjectedFault.error(aiohttp.ServerDisconnectedError),
    "hang": InjectedFault.hang(),
    "latency": InjectedFault.latency(60.0),
}
each_fault = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)


def striking(fault, *strikes):
    """Strike these of the requests: by default all."""
    numbers = iter([0.0 if strike else 1.0 for strike in strikes])
    return FaultInjectingClient.new_decorator(fault, random=lambda: next(numbers, 0.0))


@each_fault
@pytest.mark.parametrize(
    "decorators", [[], [retrying(SAFELY)]], ids=["plain", "retrying"]
)
async def test_every_view_says_that_a_fault_was_injected(fault, decorators):
    """In place of "not sent", which puzzles; it was not sent all the same."""
    faults = striking(fault)
    log = await log_of(session([], faults, *decorators, timeout=5.0))
    first = log.children[0] if log.children else log

    assert (True, False) == (first.injected, first.sent)
    assert ", injected" in first.render()
    assert "not sent" not in first.render()
    assert ", injected=yes" in TEXT.format_response(first)
    assert "sent=" not in TEXT.format_response(first)
    assert (True, False) == (first.to_dict()["injected"], first.to_dict()["sent"])
    assert json.loads(LogFormatter.json().format_response(first))["injected"] is True


async def test_rows_and_headline_of_a_call_that_only_met_faults():
    """The call ended with an injected answer, and says so."""
    log = await log_of(session([], striking(FAULTS["status"]), retrying(SAFELY)))
    headline, *rows = log.render().splitlines()

    assert log.injected
    assert "503 Service Unavailable, injected, stopped: " in headline
    assert all("503 Service Unavailable, injected  " in row for row in rows)


async def test_call_that_a_server_answered_in_the_end():
    """Only the attempt that was struck says so."""
    faults = striking(FAULTS["status"], True, False)
    log = await log_of(session([200], faults, retrying(SAFELY)))
    headline, first, second = log.render().splitlines()

    assert [False, True, False] == [each.injected for each in (log, *log.children)]
    assert "injected" not in headline + second
    assert "503 Service Unavailable, injected" in first


async def test_answer_that_a_decorator_made_of_a_fault_was_not_injected():
    """The fallback is the user's own."""

    @client_decorator
    async def fallback(delegate, ctx, request):
        await delegate.execute(ctx, request)
        return new_response(request, body=b"fallback")

    log = await log_of(session([], striking(FAULTS["status"]), fallback))

    assert (False, False, 200) == (log.injected, log.sent, log.response_status)
    assert log.render().endswith("200 OK, not sent")


async def test_failure_after_an_injected_wait_is_real():
    """The request went on, and then was refused."""
    log = await log_of(session([refused()], striking(InjectedFault.latency(0.5))))

    assert not log.injected
    assert ", not sent" in log.render()


async def test_error_of_the_function_that_switches_faults_was_not_injected():
    """It is a mistake of the user's."""

    def broken(ctx, request):
        raise LookupError("no such flag")

    faults = FaultInjectingClient.new_decorator(FAULTS["status"], enabled=broken)
    log = await log_of(session([], faults))

    assert "LookupError: no such flag, not sent" in log.render()


async def test_fault_after_the_call_was_answered_changes_nothing():
    """A decorator outside did not wait for it."""
    late = []

    @client_decorator
    async def impatient(delegate, ctx, request):
        late.append(asyncio.ensure_future(delegate.execute(ctx, request)))
        return new_response(request)

    faults = FaultInjectingClient.new_decorator(
        InjectedFault.latency(1.0), InjectedFault.status(503)
    )
    log = await log_of(session([], faults, impatient))
    response = await late[0]

    assert 503 == response.status
    assert (200, False) == (log.response_status, log.injected)
