"""The resuming client: its settings, its place, what passes it untouched."""

import asyncio

import pytest
from chains import bad_argument, chain, pass_on, response_of, retrying, session
from fake_responses import FakeResponse, FakeStream

from aioretry_smithy import (
    EndpointGroup,
    HedgingClient,
    LoadBalancingClient,
    ResumingClient,
    RetryConfig,
    RetryConfigMapping,
    RetryStrategy,
    SessionBuilder,
    capture_logs,
    client_decorator,
    rpc,
    unwrap,
)
from aioretry_smithy._resuming.client import _NoConnection
from aioretry_smithy.testing import ScriptedTransport

RESUMING = ResumingClient.new_decorator()
PLACE = "a place around RetryingClient, not inside of it"


class TestSettings:
    """What ``new_decorator()`` takes."""

    @pytest.mark.parametrize("number", [-1, 1.0, True, None, "3"])
    def test_the_number_of_resumes_is_a_whole_one(self, number):
        """0 is one too."""
        name = "max_resumes_without_progress"
        with bad_argument(name, number, "an int >= 0"):
            ResumingClient.new_decorator(max_resumes_without_progress=number)

    def test_the_filter_is_a_plain_function(self):
        """A coroutine function would say yes to all."""

        async def later(request):
            return False

        expected = "a plain function of the request, or None"
        for given in (later, "/files/"):
            with bad_argument("request_filter", given, expected):
                ResumingClient.new_decorator(request_filter=given)

    async def test_a_filter_answers_at_once(self):
        """What it returns is not awaited."""

        def later(request):
            async def answer():
                return True

            return answer()

        client = session([200], ResumingClient.new_decorator(request_filter=later))
        expected = "True or False, without awaiting it"
        with pytest.raises(ValueError, match=expected), capture_logs() as logs:
            await response_of(client)

        assert "ValueError" == logs[0].response_cause_type

    def test_it_describes_itself(self):
        """With its settings; the filter by its name."""

        def is_file(request):
            return True

        plain = chain([], RESUMING).describe()
        filtered = ResumingClient.new_decorator(
            max_resumes_without_progress=0, request_filter=is_file
        )

        assert "ResumingClient(max_resumes_without_progress=3)" in plain
        name = is_file.__qualname__
        assert (
            f"ResumingClient(max_resumes_without_progress=0, request_filter={name})"
            in chain([], filtered).describe()
        )


class TestItsPlace:
    """Outside of what sends again."""

    async def test_it_stands_outside_of_the_retrying_client(self):
        """Whatever stands between; inside, its parts would be retries of retries."""
        assert chain([], retrying(), pass_on, RESUMING).describe()
        for between in ([], [pass_on]):
            builder = chain([], RESUMING, *between, retrying())
            with bad_argument("decorator", "ResumingClient", PLACE):
                builder.build()

    async def test_it_stands_outside_of_the_hedging_client(self):
        """Which refuses any that sends again."""
        builder = chain([], RESUMING, HedgingClient.new_decorator(1.0))
        with pytest.raises(ValueError, match="inside of ResumingClient, not around"):
            builder.build()

    async def test_balancing_stands_inside(self):
        """So that each part goes to an endpoint; also where the builder places it."""
        group = EndpointGroup.of("http://a.example", "http://b.example")
        balancing = LoadBalancingClient.new_decorator(group)
        with pytest.raises(ValueError, match="inside of ResumingClient, not around"):
            chain([], RESUMING, balancing).build()
        lines = SessionBuilder(group).decorator(RESUMING).describe().splitlines()

        assert ["ResumingClient", "LoadBalancingClient"] == [
            line.strip().partition("(")[0] for line in lines[:2]
        ]

    async def test_nothing_inside_buffers_responses(self):
        """A whole body in memory cannot break."""
        buffering = retrying(buffer_response=True)
        with bad_argument("buffer_response", True, "False inside of ResumingClient"):
            chain([], buffering, RESUMING).build()

    async def test_a_mapping_is_not_asked_before_there_is_a_call(self):
        """What it buffers is whole when this client sees it."""
        config = RetryConfig(RetryStrategy.never(), buffer_response=True)
        mapping = RetryConfigMapping.of(lambda ctx, request: "all", lambda key: config)
        client = session([(200, b"whole")], retrying(mapping), RESUMING)

        assert b"whole" == await (await response_of(client)).read()

    def test_functions_have_no_downloads(self):
        """It is for sessions."""

        async def load():
            return b""

        with pytest.raises(ValueError, match="a decorator for functions"):
            rpc(RESUMING)(load)

    async def test_it_is_found(self):
        """As any client is."""
        client = session([], RESUMING)

        assert isinstance(unwrap(client, ResumingClient), ResumingClient)
        await client.close()


class TestWhatPasses:
    """Answers that are whole, and those that are none of aiohttp's."""

    async def test_a_whole_body_is_left_alone(self):
        """It is the very response that came."""
        transport = ScriptedTransport([(200, {"ETag": '"v1"'}, b"whole")])
        response = await response_of(session(transport, RESUMING))

        assert b"whole" == await response.read()
        (request,) = transport.requests
        assert "identity" == request.headers["Accept-Encoding"]

    async def test_a_class_of_the_users_own_is_left_alone(self):
        """It promises only that it can be read."""
        own = FakeResponse(FakeStream(b""))

        @client_decorator
        async def answer(delegate, ctx, request):
            return own

        client = session([], answer, RESUMING)

        assert own is await response_of(client)
        assert [] == own.calls


async def test_stream_of_parts_pauses_no_connection():
    """The first one may be gone by then; aiohttp asks it all the same."""
    connection = _NoConnection(asyncio.get_running_loop())
    connection.pause_reading()
    connection.resume_reading()

    assert connection.transport is None
