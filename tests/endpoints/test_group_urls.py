"""URLs of requests to several servers, before and after one is chosen."""

from __future__ import annotations

from balanced import IN_ORDER, ROUND_ROBIN, Fleet, call, group_of
from chains import retrying

from aioretry_smithy import (
    Endpoint,
    EndpointGroup,
    HttpRequest,
    OutlierDetection,
    client_decorator,
)


class TestUrls:
    """The URLs of requests to servers with URLs of their own."""

    async def test_absolute_url_of_the_only_origin_is_balanced(self):
        """Case 19 for groups that are given: it stays as it is."""
        fleet = Fleet()
        group = EndpointGroup.of(
            *(Endpoint("http://a.example/v1", address=f"10.0.0.{n}") for n in (1, 2)),
            selection=ROUND_ROBIN,
        )
        async with fleet.session(group) as client:
            logs = [(await call(client, "http://A.example/x"))[1] for _ in range(2)]

        assert {"10.0.0.1:80", "10.0.0.2:80"} == {log.endpoint for log in logs}
        assert {"http://a.example/x"} == {
            str(each.url) for each in fleet.transport.requests
        }

    async def test_url_is_the_first_endpoints_until_one_is_chosen(self):
        """The root shows what the first attempt asked for."""
        seen = []

        @client_decorator
        async def look(delegate, ctx, request):
            seen.append(str(request.url))
            return await delegate.execute(ctx, request)

        fleet = Fleet(a=503)
        async with fleet.session(group_of("ab"), retrying(0.0), look) as client:
            _, log = await call(client)

        assert ["http://a.example/orders"] == seen
        assert "http://a.example/orders" == str(log.request_url)
        assert "http://b.example/orders" == str(log.children[1].request_url)

    async def test_bad_url_is_aiohttps_to_report(self):
        """It is no failure of an endpoint."""
        group = group_of("ab", outlier_detection=OutlierDetection(connect_failures=1))
        async with Fleet().session(group) as client:
            error, log = await call(client, "http://a:port/")

        assert ("InvalidUrlClientError", None) == (type(error).__name__, log.endpoint)


class TestRewritten:
    """Requests that users' decorators write anew."""

    async def test_url_outside_stays_the_groups_where_it_begins_as_shown(self):
        """By the first endpoint's URL, whichever is asked then."""

        @client_decorator
        async def rewrite(delegate, ctx, request):
            url = request.url.with_path(request.url.path + "/7")
            return await delegate.execute(ctx, request.replace(url=url))

        fleet = Fleet(a=503)
        group = EndpointGroup.of(
            "http://a.example/v1", "http://b.example/v2", selection=IN_ORDER
        )
        async with fleet.session(group, retrying(0.0), rewrite) as client:
            await call(client)

        assert ["http://a.example/v1/orders/7", "http://b.example/v2/orders/7"] == [
            str(each.url) for each in fleet.transport.requests
        ]

    async def test_request_made_by_hand_outside_is_balanced(self):
        """A path is the group's."""

        @client_decorator
        async def anew(delegate, ctx, request):
            return await delegate.execute(ctx, HttpRequest("GET", "/by-hand"))

        fleet = Fleet(a=503)
        async with fleet.session(group_of("ab"), retrying(0.0), anew) as client:
            _, log = await call(client)

        assert ["http://a.example/by-hand", "http://b.example/by-hand"] == [
            str(each.url) for each in fleet.transport.requests
        ]
        assert "b.example" == log.endpoint

    async def test_request_made_by_hand_inside_goes_to_the_one_chosen(self):
        """As its path has no host of its own."""

        @client_decorator
        async def anew(delegate, ctx, request):
            return await delegate.execute(ctx, HttpRequest("GET", "/by-hand"))

        fleet = Fleet(a=503)
        async with fleet.session(group_of("ab"), anew, retrying(0.0)) as client:
            _, log = await call(client)

        assert ["a", "b"] == fleet.asked
        assert "b.example" == log.endpoint
