"""Rank the outcomes of a request and its hedges: which of them the caller gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._retry.refusal import is_refusal

if TYPE_CHECKING:
    from .sent_request import SentRequest


class Standing:
    """Keeps the outcomes of the requests so far, and ranks them.

    The first good answer of a server wins. Where there is none, when all requests are
    over, comes the first good answer of something on this side, then the last bad
    answer, then the first failure, then the first refusal on this side.
    """

    __slots__ = ("_bad", "_failure", "_refusal", "_stand_in", "_winner")

    def __init__(self) -> None:
        self._winner: SentRequest | None = None
        self._stand_in: SentRequest | None = None
        self._bad: SentRequest | None = None
        self._failure: SentRequest | None = None
        self._refusal: SentRequest | None = None

    @property
    def best(self) -> SentRequest | None:
        """The request that counts, if nothing better follows."""
        return (
            self._winner
            or self._stand_in
            or self._bad
            or self._failure
            or self._refusal
        )

    def win(self, sent: SentRequest) -> None:
        """Take a good answer of a server; the others are closed."""
        self.close()
        self._winner = sent

    def stand_in(self, sent: SentRequest) -> None:
        """Keep a good answer of something on this side, such as a fallback."""
        self.let_go()
        if self._stand_in is None:
            self._stand_in = sent
        else:
            sent.close()

    def answer_badly(self, sent: SentRequest) -> None:
        """Keep an answer that is not good, in place of the one before."""
        self.let_go()
        if self._stand_in is None:
            self._bad = sent
        else:
            sent.close()

    def fail(self, sent: SentRequest) -> None:
        """Note a failure."""
        is_injected = sent.ctx is not None and sent.ctx.log.injected
        if is_refusal(sent.cause) and not is_injected:
            self._refusal = self._refusal or sent
        else:
            self._failure = self._failure or sent

    def free_connection(self) -> None:
        """Close a bad answer whose connection other requests may wait for."""
        if self._bad is not None and self._bad.stays_open():
            self.let_go()

    def let_go(self) -> None:
        """Close the bad answer, if there is one; it no longer counts."""
        if self._bad is not None:
            self._bad.close()
            self._bad = None

    def close(self) -> None:
        """Close all answers."""
        for sent in (self._winner, self._stand_in, self._bad):
            if sent is not None:
                sent.close()
