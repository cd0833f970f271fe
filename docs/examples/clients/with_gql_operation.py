from gql import Client, GraphQLRequest, gql
from gql.transport.aiohttp import AIOHTTPTransport
from gql.transport.exceptions import TransportQueryError

from aioretry_smithy import (
    RetryingClient,
    RetryingRpcClient,
    RetryRule,
    RetryStrategy,
    decorate,
    rpc,
)

NEWEST = gql("query { newest { id } }")
ORDER = gql("query ($id: ID!) { order(id: $id) { items } }")


@rpc(
    RetryingRpcClient.new_decorator(
        # "errors" in an answer whose status is 200
        RetryRule(exceptions=[TransportQueryError], on_timeout=True),
        max_total_attempts=3,
        attempt_timeout=5.0,
    ),
    response_timeout=20.0,
)
async def items_of_newest_order(url: str) -> list[str]:
    transport = AIOHTTPTransport(url)
    strategy = RetryStrategy.on_server_error_status()
    async with Client(transport=transport) as client:
        decorate(transport.session, RetryingClient.new_decorator(strategy))
        newest = (await client.execute(NEWEST))["newest"]
        answer = await client.execute(GraphQLRequest(ORDER, variable_values=newest))
        items: list[str] = answer["order"]["items"]
        return items
