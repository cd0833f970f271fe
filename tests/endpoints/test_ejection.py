"""Endpoints that are left alone because of how their requests end.

Of the cases of endpoints.md (f): 76 to 93.
"""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from balanced import (
    IN_ORDER,
    ROUND_ROBIN,
    Fleet,
    at,
    call,
    group_of,
    out,
    outcomes,
    state_of,
    url_of,
)
from chains import SAFELY, after, now, refused, retrying

from aioretry_smithy import (
    ConcurrencyLimitingClient,
    DynamicEndpointGroup,
    Endpoint,
    EndpointGroup,
    OutlierDetection,
    UnprocessedRequestError,
    client_decorator,
)

pytestmark = pytest.mark.usefixtures("shortest_ejections")


class TestConsecutive:
    """Failures in a row."""

    @pytest.mark.parametrize(
        ("number", "expected"), [(4, {}), (5, {"a": "consecutive_failures"})]
    )
    async def test_five_are_too_many(self, number, expected):
        """Case 76: not four."""
        assert expected == await outcomes(Fleet(a=503), group_of("ab"), number)

    async def test_success_ends_the_row(self):
        """Case 78: four failures and a success, again and again."""
        fleet = Fleet(a=[*[503, 503, 503, 503, 200] * 4])
        group = group_of(
            "ab", outlier_detection=OutlierDetection(failure_rate_threshold=1.0)
        )

        assert {} == await outcomes(fleet, group, 20)

    @pytest.mark.parametrize(
        "failure", [500, 501, 599, aiohttp.ServerDisconnectedError()]
    )
    async def test_statuses_of_5xx_and_exceptions_are_failures(self, failure):
        """Case 76: of any kind."""
        detection = OutlierDetection(consecutive_failures=1)

        assert {"a": "consecutive_failures"} == await outcomes(
            Fleet(a=failure), group_of("ab", outlier_detection=detection), 1
        )

    @pytest.mark.parametrize(
        "answer", [200, 304, 400, 404, 408, 429, (429, {"Retry-After": "1"}, b"")]
    )
    async def test_others_are_none(self, answer):
        """Case 80: 4xx and 429 never eject."""
        detection = OutlierDetection(consecutive_failures=1)
        group = group_of("ab", outlier_detection=detection)

        assert {} == await outcomes(Fleet(a=answer), group, 20)

    async def test_number_is_the_users(self):
        """Case 76: of consecutive_failures."""
        detection = OutlierDetection(consecutive_failures=2)
        fleet = Fleet(a=503)
        await outcomes(fleet, group_of("ab", outlier_detection=detection), 4)

        assert "aabb" == fleet.text


class TestConnect:
    """Connections that are refused."""

    async def test_one_is_too_many(self):
        """Case 77: it was certainly not sent, and it would be so again."""
        assert {"a": "connect_failures"} == await outcomes(
            Fleet(a=refused()), group_of("ab"), 1
        )

    async def test_number_is_the_users(self):
        """Case 77: in a row, of connect_failures."""
        detection = OutlierDetection(connect_failures=2)
        fleet = Fleet(a=[refused(), 200, refused(), refused()])
        await outcomes(fleet, group_of("ab", outlier_detection=detection), 5)

        assert "aaaab" == fleet.text

    async def test_without_detection_none_is_out(self):
        """Case 91: outlier_detection=None."""
        fleet = Fleet(a=[200, refused()])

        assert {} == await outcomes(fleet, group_of("ab", outlier_detection=None), 20)
        assert {"a"} == set(fleet.asked)


class TestRate:
    """The share of failures in a window."""

    async def test_more_than_half_of_ten(self):
        """Case 79: not nine, and not half."""
        fleet = Fleet(a=[503, 200, 503, 503, 200, 503, 200, 200, 503, 503])
        group = group_of("ab")
        async with fleet.session(group) as client:
            found = []
            for _ in range(10):
                await call(client)
                found.append(out(group))

        assert [{}] * 9 + [{"a": "failure_rate"}] == found

    async def test_window_forgets(self):
        """Case 79: what was 20 s ago does not count."""
        fleet = Fleet(a=[503, 200, 503, 503, 200, 503, 200, 200, 503, 503])
        group = group_of("ab")
        async with fleet.session(group) as client:
            for _ in range(9):
                await call(client)
            await asyncio.sleep(21.0)
            await call(client)

        assert {} == out(group)

    async def test_settings_are_the_users(self):
        """Case 79: threshold and number."""
        detection = OutlierDetection(
            minimum_request_threshold=4, failure_rate_threshold=0.2
        )
        fleet = Fleet(a=[200, 200, 200, 503])

        assert {"a": "failure_rate"} == await outcomes(
            fleet, group_of("ab", outlier_detection=detection), 4
        )

    async def test_begins_anew_after_a_return(self):
        """What was before the ejection is forgotten."""
        detection = OutlierDetection(
            minimum_request_threshold=4, consecutive_failures=3
        )
        fleet = Fleet(a=[503, 503, 503, 200, 503])
        group = group_of("ab", outlier_detection=detection)
        async with fleet.session(group) as client:
            for _ in range(3):
                await call(client)
            await at(6.0)
            await call(client)
            await call(client)

        assert {} == out(group)
        assert "aaaaa" == fleet.text


class TestNothing:
    """What says nothing of a server."""

    @pytest.mark.parametrize(
        "failure",
        [
            UnprocessedRequestError("ours"),
            ValueError("a mistake"),
            aiohttp.InvalidURL("x"),
        ],
    )
    async def test_refusals_and_mistakes_of_ours(self, failure):
        """Case 81: nor do they end a row."""
        detection = OutlierDetection(consecutive_failures=2, connect_failures=2)
        fleet = Fleet(a=[503, failure, failure, failure, 503])
        group = group_of("ab", outlier_detection=detection)
        async with fleet.session(group) as client:
            for _ in range(4):
                await call(client)
            before = out(group)
            await call(client)

        assert ({}, {"a": "consecutive_failures"}) == (before, out(group))
        assert 0 == state_of(group, "a").in_flight

    async def test_refusal_of_a_limit_further_in(self):
        """Case 81: a queue that is full is on this side."""
        limit = ConcurrencyLimitingClient.new_decorator(1, max_pending=0)
        fleet = Fleet(a=after(1.0, 200))
        group = group_of("ab")
        async with fleet.session(group, limit) as client:
            results = await asyncio.gather(*(call(client) for _ in range(3)))

        assert [200, "a.example"] == [results[0][0], results[0][1].endpoint]
        assert {} == out(group)
        assert 0 == state_of(group, "a").in_flight

    async def test_cancelled_request(self):
        """Case 81: by the caller, at any time."""
        detection = OutlierDetection(consecutive_failures=1)
        fleet = Fleet(a=after(9.0, 200))
        group = group_of("ab", outlier_detection=detection)
        async with fleet.session(group, retrying(0.0)) as client:
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await client.get("/orders")

        assert ({}, 0) == (out(group), state_of(group, "a").in_flight)
        assert state_of(group, "a").latency is None

    async def test_body_that_cannot_be_made(self):
        """Case 81: what a generator of the caller's raises is his mistake."""

        @client_decorator
        async def read(delegate, ctx, request):
            async for _ in request.arguments["data"]:
                pass
            return await delegate.execute(ctx, request)

        async def body():
            raise TimeoutError
            yield b""

        group = group_of(
            "ab", outlier_detection=OutlierDetection(consecutive_failures=1)
        )
        async with Fleet().session(group, read) as client:
            error, _ = await call(client, method="POST", data=body())

        assert isinstance(error, TimeoutError)


class TestFloor:
    """How many may be out at once."""

    @pytest.mark.parametrize(
        ("names", "most"), [("a", 0), ("ab", 1), ("abc", 1), ("abcd", 2), ("abcde", 2)]
    )
    async def test_at_most_half(self, names, most):
        """Case 87: of 3 one, of 4 two, of 2 one, of 1 none."""
        fleet = Fleet(**dict.fromkeys(names, refused()))
        group = group_of(names, selection=ROUND_ROBIN)

        assert most == len(await outcomes(fleet, group, 50))

    async def test_weights_of_none_do_not_count(self):
        """Case 87: n is of those that may be chosen at all."""
        fleet = Fleet(**dict.fromkeys("abc", refused()))
        group = EndpointGroup.of(
            *map(url_of, "abc"),
            *(Endpoint(url_of(name), weight=0) for name in "xyz"),
            selection=ROUND_ROBIN,
        )

        assert 1 == len(await outcomes(fleet, group, 50))

    async def test_one_that_may_not_be_out_may_be_later(self):
        """Case 87: it is counted after the other has come back."""
        fleet = Fleet(a=[refused(), 200], b=refused())
        group = group_of("ab")
        async with fleet.session(group) as client:
            for _ in range(3):
                await call(client)
            first = out(group)
            await at(5.0)
            await call(client)
            back = out(group)
            fleet.answers["a"] = 503
            for _ in range(6):
                await call(client)

        assert ({"a": "connect_failures"}, {}) == (first, back)
        assert {"a": "consecutive_failures"} == out(group)

    async def test_total_outage_ends_with_the_outage(self):
        """Case 88: all are used, and the last failure is at recovery."""
        fleet = Fleet(**dict.fromkeys("abc", 503))
        group = group_of("abc", selection=ROUND_ROBIN)
        failed = []
        async with fleet.session(group, retrying(0.05, max_total_attempts=3)) as client:
            while now() < 40.0:
                if now() >= 16.0:
                    fleet.answers.clear()
                began = now()
                status, _ = await call(client)
                if status != 200:
                    failed.append(began)
                await asyncio.sleep(0.1)

        during = [name for moment, name in fleet.times if moment < 16.0]
        assert max(failed) < 16.0
        assert min(during.count(name) for name in "abc") >= 2
        assert {} == out(group)

    async def test_list_that_shrinks_to_those_that_are_out_uses_them(self):
        """All of them, for there is nothing else."""
        fleet = Fleet(a=refused(), b=refused())
        group = DynamicEndpointGroup(map(url_of, "abcd"), selection=IN_ORDER)
        async with fleet.session(group, retrying(SAFELY)) as client:
            await call(client)
            before = out(group)
            group.set_endpoints(map(url_of, "ab"))
            fleet.asked.clear()
            error, _ = await call(client)

        assert {"a", "b"} == set(before) == set(fleet.asked)
        assert isinstance(error, aiohttp.ClientConnectorError)

    async def test_none_may_be_out_where_that_is_said(self):
        """max_ejected=0.0."""
        group = group_of("abcd", outlier_detection=OutlierDetection(max_ejected=0.0))

        assert {} == await outcomes(Fleet(a=refused()), group, 20)
