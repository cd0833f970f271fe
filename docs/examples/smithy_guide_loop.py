import logging
import sys
import time
from collections.abc import Callable

from aioretry_smithy.smithy import CallError, RetryError, RetryProfile
from aioretry_smithy.smithy.sync import RetryStrategy, StandardRetryStrategy

logger = logging.getLogger("orders")


class Client:
    def __init__(
        self,
        retry_strategy: RetryStrategy,
        send: Callable[[bytes], str],
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.retry_strategy = retry_strategy
        self.send = send
        self.sleep = sleep

    def request(self, serialized_request: bytes) -> str:
        # No initial token: one attempt, no retry.
        try:
            retry_token = self.retry_strategy.acquire_initial_retry_token()
        except RetryError:
            return self.send(serialized_request)

        # The strategy knows how many attempts there may be.
        while True:
            # The first attempt may have to wait, too.
            if retry_token.retry_delay is not None:
                self.sleep(retry_token.retry_delay)

            try:
                result = self.send(serialized_request)
            except Exception as error:
                try:
                    retry_token = self.retry_strategy.refresh_retry_token_for_retry(
                        token_to_renew=retry_token, error=error
                    )
                    continue
                except RetryError as retry_error:
                    logger.info("no retry: %s", retry_error)
                # Raised here, the error does not get the refusal as its context.
                raise

            self.retry_strategy.record_success(token=retry_token)
            return result


def service(*statuses: int) -> Callable[[bytes], str]:
    answers = iter(statuses)

    def send(serialized_request: bytes) -> str:
        status = next(answers)
        if status >= 500:
            raise CallError(f"status {status}", fault="server")
        return "done"

    return send


def report(seconds: float) -> None:
    print(f"sleep for {seconds:.3f} s")


def main() -> None:
    logging.basicConfig(format="%(message)s", level=logging.INFO, stream=sys.stdout)
    retry_strategy = StandardRetryStrategy(profile=RetryProfile.GUIDE)
    for statuses in (200,), (503, 503, 200), (503, 503, 503, 503, 503):
        client = Client(retry_strategy, service(*statuses), sleep=report)
        try:
            print(client.request(b"orders"))
        except CallError as error:
            print(f"failed: {error}")
        print(f"    quota {retry_strategy.quota_for().available_capacity}")


main()
