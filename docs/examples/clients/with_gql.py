from gql import Client, gql
from gql.transport.aiohttp import AIOHTTPTransport

from aioretry_smithy import RetryingClient, RetryStrategy, decorate

ORDERS = gql("query { orders { id } }")


async def orders(url: str) -> list[str]:
    transport = AIOHTTPTransport(url)
    # A query is a POST too, which failsafe() would not send again.
    strategy = RetryStrategy.on_server_error_status()
    async with Client(transport=transport) as client:
        decorate(transport.session, RetryingClient.new_decorator(strategy))
        answer = await client.execute(ORDERS)
        return [order["id"] for order in answer["orders"]]
