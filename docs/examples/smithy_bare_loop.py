import asyncio
from collections.abc import Awaitable, Callable, Iterator

from aioretry_smithy.smithy import (
    AdaptiveRetryStrategy,
    CallError,
    RetryError,
    StandardRetryToken,
)

strategy = AdaptiveRetryStrategy()  # one for all calls


async def with_retries(send: Callable[[], Awaitable[str]]) -> str:
    token = await strategy.acquire_initial_retry_token()
    while True:
        await asyncio.sleep(token.retry_delay)
        try:
            result = await send()
        except Exception as error:
            renewal = await renewed(token, error)
            if renewal is None:
                raise
            token = renewal
        else:
            await strategy.record_success(token=token)
            return result


async def renewed(
    token: StandardRetryToken, error: Exception
) -> StandardRetryToken | None:
    try:
        return await strategy.refresh_retry_token_for_retry(
            token_to_renew=token, error=error
        )
    except RetryError as refusal:
        error.add_note(f"not retried: {refusal}")
        return None


async def main() -> None:
    throttled = CallError("slow down", is_throttling_error=True)
    outcomes: Iterator[Exception | str] = iter([throttled, "done"])

    async def send() -> str:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    loop = asyncio.get_running_loop()
    started = loop.time()
    print(await with_retries(send), f"after {loop.time() - started:.1f} s")


asyncio.run(main())
