from kubernetes_asyncio import client

from aioretry_smithy import RetryingClient, RetryStrategy, decorate

RETRYING = RetryingClient.new_decorator(RetryStrategy.failsafe())


async def names_of_pods(
    configuration: client.Configuration, namespace: str
) -> list[str]:
    async with client.ApiClient(configuration) as api:
        decorate(api.rest_client.pool_manager, RETRYING)
        pods = await client.CoreV1Api(api).list_namespaced_pod(namespace)
        return [pod.metadata.name for pod in pods.items]
