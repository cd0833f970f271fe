from typing import Any

from elastic_transport import AiohttpHttpNode
from elasticsearch import AsyncElasticsearch

from aioretry_smithy import RetryingClient, RetryStrategy, decorate

RETRYING = RetryingClient.new_decorator(RetryStrategy.failsafe())


class RetryingNode(AiohttpHttpNode):
    """Decorate the session as soon as the node has built it."""

    def _create_aiohttp_session(self) -> None:
        super()._create_aiohttp_session()
        decorate(self.session, RETRYING)


async def find_order(url: str, number: str) -> dict[str, Any]:
    # Without retries of its own it leaves all attempts to the session.
    async with AsyncElasticsearch(
        url, node_class=RetryingNode, max_retries=0, request_timeout=10.0
    ) as elasticsearch:
        found = await elasticsearch.get(index="orders", id=number)
        return found["_source"]
