"""A stand-in for the simulated server, with answers from a list."""

from __future__ import annotations


class ScriptedServer:
    """Answers with a status after seconds."""

    def __init__(self, answers):
        self.answers = iter(answers)

    def serve(self, now):
        status, seconds = next(self.answers)
        return status, now + seconds
