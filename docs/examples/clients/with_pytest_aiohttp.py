from aioretry_smithy import Backoff, RetryingClient, RetryStrategy, decorate

RETRYING = RetryingClient.new_decorator(RetryStrategy.failsafe(Backoff.without_delay()))


async def retrying_client(aiohttp_client, application):
    client = await aiohttp_client(application)
    decorate(client.session, RETRYING)
    return client
