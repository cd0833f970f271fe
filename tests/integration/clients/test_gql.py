"""gql builds a session when it connects, or takes the one that stands there."""

import pytest
from aiohttp import web

pytest.importorskip("gql")

from chains import connected, retrying
from gql import Client
from gql.transport.aiohttp import AIOHTTPTransport

from aioretry_smithy import RetryStrategy

ANSWER = {"data": {"orders": [{"id": 1}, {"id": 2}]}}


async def test_query_is_sent_again(example, flaky, start, attempts):
    """A decorated session of the library's own sends the whole query twice."""
    flaky.answers["/graphql"] = ANSWER
    url = await start(flaky)

    orders = await example("with_gql").orders(f"{url}/graphql")

    assert [1, 2] == orders
    assert ["POST", "POST"] == [method for method, _, _ in flaky.requests]
    assert 1 == len({body for _, _, body in flaky.requests if b"orders" in body})
    assert [2] == attempts()


async def test_session_in_the_place_of_the_librarys_own(
    example, flaky, start, attempts
):
    """A session of ours does as well, and the library closes it."""
    flaky.answers["/graphql"] = ANSWER
    transport = AIOHTTPTransport(f"{await start(flaky)}/graphql")
    strategy = RetryStrategy.on_server_error_status()
    async with Client(transport=transport) as client:
        await transport.session.close()
        session = transport.session = connected(None, retrying(strategy))
        answer = await client.execute(example("with_gql").ORDERS)

    assert ANSWER["data"] == answer
    assert 2 == len(flaky.requests)
    assert [2] == attempts()
    assert session.closed


async def test_operation_of_two_queries_is_made_again(example, serving, logs):
    """Each query of an attempt is in the log, also one that answered with errors."""
    answers = iter(
        [
            web.Response(status=503),
            web.json_response({"data": {"newest": {"id": "1"}}}),
            web.json_response({"errors": [{"message": "order 1 has gone"}]}),
            web.json_response({"data": {"newest": {"id": "2"}}}),
            web.json_response({"data": {"order": {"items": ["tea"]}}}),
        ]
    )

    async def answer(request):
        return next(answers)

    server = await serving(answer)
    operation = example("with_gql_operation").items_of_newest_order

    items = await operation(str(server.make_url("/graphql")))

    (log,) = logs
    assert ["tea"] == items
    assert [[[503, 200], [200]], [[200], [200]]] == [
        [[sent.response_status for sent in call.children] for call in attempt.calls]
        for attempt in log.children
    ]
    assert "TransportQueryError" in log.render()
