import asyncio

from aioretry_smithy.smithy import CallError, RetryError
from aioretry_smithy.smithy.sync import RetryStrategy, StandardRetryStrategy


class TransportClient:
    def __init__(self, *statuses: int) -> None:
        self.statuses = iter(statuses)

    def send(self, serialized_request: bytes) -> int:
        return next(self.statuses)


class Client:
    async def request(
        self,
        retry_strategy: RetryStrategy,
        transport_client: TransportClient,
        serialized_request: bytes,
    ) -> str:
        response: str | Exception

        try:
            retry_token = retry_strategy.acquire_initial_retry_token()
        except RetryError:
            transport_response = transport_client.send(serialized_request)
            return self._deserialize(transport_response)

        while True:
            await asyncio.sleep(retry_token.retry_delay)
            try:
                transport_response = transport_client.send(serialized_request)
                response = self._deserialize(transport_response)
            except Exception as e:
                response = e

            if isinstance(response, Exception):
                try:
                    retry_token = retry_strategy.refresh_retry_token_for_retry(
                        token_to_renew=retry_token,
                        error=response,
                    )
                    continue
                except RetryError as retry_error:
                    raise retry_error from response

            retry_strategy.record_success(token=retry_token)
            return response

    def _deserialize(self, transport_response: int) -> str:
        if transport_response >= 500:
            raise CallError(f"status {transport_response}", fault="server")
        return "done"


async def main() -> None:
    client, retry_strategy = Client(), StandardRetryStrategy()
    loop = asyncio.get_running_loop()
    for statuses in (200,), (503, 503, 200), (503, 503, 503):
        started = loop.time()
        transport_client = TransportClient(*statuses)
        try:
            print(await client.request(retry_strategy, transport_client, b"orders"))
        except RetryError as error:
            print(f"{error}, the last one with {error.__cause__}")
        quota = retry_strategy.quota_for().available_capacity
        print(f"    after {loop.time() - started:.3f} s, quota {quota}")


asyncio.run(main())
