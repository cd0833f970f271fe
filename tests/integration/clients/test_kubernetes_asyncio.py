"""kubernetes_asyncio builds a session when its client is made."""

import pytest

pytest.importorskip("kubernetes_asyncio")

from kubernetes_asyncio.client import Configuration

PODS = "/api/v1/namespaces/shop/pods"


async def test_pods_are_asked_for_again(example, flaky, start, attempts):
    """The library sees one answer, the server two requests."""
    flaky.answers[PODS] = {
        "apiVersion": "v1",
        "kind": "PodList",
        "metadata": {},
        "items": [{"metadata": {"name": "orders-1"}}],
    }
    configuration = Configuration(host=await start(flaky))

    names = await example("with_kubernetes_asyncio").names_of_pods(
        configuration, "shop"
    )

    assert ["orders-1"] == names
    assert [("GET", PODS, b"")] * 2 == flaky.requests
    assert [2] == attempts()
