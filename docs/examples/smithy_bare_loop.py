import asyncio

from aioretry_smithy.smithy import AdaptiveRetryStrategy, CallError, RetryError

strategy = AdaptiveRetryStrategy()  # one for all calls


async def with_retries(send):
    token = await strategy.acquire_initial_retry_token()
    while True:
        await asyncio.sleep(token.retry_delay)
        try:
            result = await send()
        except Exception as error:
            token = await renewed(token, error)
            if token is None:
                raise
        else:
            await strategy.record_success(token=token)
            return result


async def renewed(token, error):
    try:
        return await strategy.refresh_retry_token_for_retry(
            token_to_renew=token, error=error
        )
    except RetryError as refusal:
        error.add_note(f"not retried: {refusal}")
        return None


async def main():
    outcomes = iter([CallError("slow down", is_throttling_error=True), "done"])

    async def send():
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    loop = asyncio.get_running_loop()
    started = loop.time()
    print(await with_retries(send), f"after {loop.time() - started:.1f} s")


asyncio.run(main())
