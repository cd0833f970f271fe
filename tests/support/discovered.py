"""A source of endpoints that is asked, and who hears of it."""

from __future__ import annotations

import asyncio
import math

from chains import now

from aioretry_smithy import Endpoint
from aioretry_smithy._endpoints.discovery import Answer, Discovery, Listed


def found(*hosts, ttl=None):
    """Return the answer that lists these hosts."""
    return Answer(tuple(Listed(Endpoint(f"http://{host}")) for host in hosts), ttl)


class Asked:
    """Gives its answers in turn, the last one again and again; notes when."""

    def __init__(self, *answers):
        self.answers = [*answers]
        self.times = []

    async def __call__(self):
        self.times.append(now())
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        if callable(answer):
            answer = await answer()
        if isinstance(answer, BaseException):
            raise answer
        return answer


class Heard:
    """Notes what a discovery tells, and wakes who waits for it."""

    def __init__(self):
        self.lists = []
        self.failures = []
        self.waiters = []

    def set_listed(self, listed):
        self.lists.append([str(each.endpoint) for each in listed])
        self.wake()

    def fail(self, failure):
        self.failures.append(repr(failure))
        self.wake()

    def wake(self):
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)
        self.waiters.clear()


class Found(Heard):
    """A discovery and what it tells."""

    def __init__(self, *answers, random=lambda: 0.5, **settings):
        super().__init__()
        self.asked = answers[0] if isinstance(answers[0], Asked) else Asked(*answers)
        self.discovery = Discovery(
            self.asked,
            self.take,
            on_failed=self.fail,
            random=random,
            **settings,
        )

    def take(self, listed):
        self.set_listed(listed)

    async def use(self, at=None):
        """Use the list at that time, and let what comes of it at once happen."""
        if at is not None:
            await pass_time(at - now())
        may_serve = self.discovery.use(now())
        await settled()
        return may_serve

    async def wait(self):
        """Wait until the list may serve, as calls do."""
        while not self.discovery.use(now()):
            waiter = asyncio.get_running_loop().create_future()
            self.waiters.append(waiter)
            pause = self.discovery.asks_at - now()
            await asyncio.wait([waiter], timeout=None if pause == math.inf else pause)

    @property
    def times(self):
        return self.asked.times


def after(seconds, answer):
    """Answer after a while."""

    async def respond():
        await asyncio.sleep(seconds)
        return answer

    return respond


async def settled():
    """Let what can happen at once happen."""
    for _ in range(5):
        await asyncio.sleep(0)


async def pass_time(seconds):
    """Let time pass, and what is due then happen."""
    await asyncio.sleep(seconds)
    await settled()


def tasks():
    return asyncio.all_tasks() - {asyncio.current_task()}
