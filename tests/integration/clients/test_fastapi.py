"""FastAPI keeps one session in the state of its lifespan."""

import pytest
from aiohttp import web

pytest.importorskip("fastapi")
httpx = pytest.importorskip("httpx")


@pytest.fixture
def asked(example, serving):
    """A function that asks a service whose server of orders answers so."""

    async def ask(*answers):
        left = iter(answers)

        async def answer(request):
            return web.json_response({"order": "tea"}, status=next(left))

        server = await serving(answer)
        app = example("in_fastapi").new_app(str(server.make_url("/")))
        async with (
            app.router.lifespan_context(app) as state,
            httpx.AsyncClient(
                transport=httpx.ASGITransport(_with_state(app, state)),
                base_url="http://shop.example.com",
            ) as caller,
        ):
            return await caller.get("/orders/7")

    return ask


def _with_state(app, state):
    """Return the app as a server runs it, which hands the state to each request."""

    async def run(scope, receive, send):
        await app({**scope, "state": state}, receive, send)

    return run


async def test_answer_after_a_retry(asked, logs):
    """The caller hears nothing of the attempt that failed."""
    response = await asked(503, 200)

    assert (200, {"order": "tea"}) == (response.status_code, response.json())
    assert [2] == [log.total_attempts for log in logs]


async def test_failure_of_the_other_service(asked, logs):
    """The caller hears that the fault is not this service's."""
    response = await asked(404)

    assert 502 == response.status_code
    assert [1] == [log.total_attempts for log in logs]
