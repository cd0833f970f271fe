"""The test client of pytest-aiohttp has a session like any other."""


async def test_request_of_a_test_client_is_sent_again(
    example, flaky, aiohttp_client, attempts
):
    """Relative paths, the client's own ways of speaking and retries go together."""
    flaky.answers["/orders"] = [1, 2]
    retrying_client = example("with_pytest_aiohttp").retrying_client
    client = await retrying_client(aiohttp_client, flaky.application)

    async with client.get("/orders") as response:
        orders = await response.json()

    assert [1, 2] == orders
    assert [("GET", "/orders", b"")] * 2 == flaky.requests
    assert [2] == attempts()
