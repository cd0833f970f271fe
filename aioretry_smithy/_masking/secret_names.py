"""Tell by the name of a header, parameter or member whether its value is secret."""

from __future__ import annotations

import re

SECRET_HEADERS = frozenset(
    "authorization proxy-authorization cookie cookie2 set-cookie set-cookie2"
    " dpop".split()
)
"""Headers that are credentials, in lower case, some without a word that tells."""

_SECRET_WORDS = frozenset("auth bearer hmac jwt key otp pass pwd sid sig".split())
_SECRET_PARTS = re.compile(
    "accesskey|apikey|assertion|authorization|credential|passcode|passphrase|passwd"
    "|password|privatekey|secret|session|signature|token"
)
# Most names have none of these, and need no closer look.
_SUSPICIOUS = re.compile("|".join([*sorted(_SECRET_WORDS), _SECRET_PARTS.pattern]))
# Named like secrets, and none. The second is a nonce.
_HARMLESS = frozenset(
    {"accesscontrolallowcredentials", "secwebsocketkey", "idempotencykey"}
)
# How many tokens of a language model a request may cost, cost or still may.
_COUNT_OF_TOKENS = re.compile(
    ".*ratelimit.*tokens.*|maxnewtokens"
    "|(?:max|min|prompt|completion|input|output|total|cached|reasoning)+tokens"
)
_SEPARATORS = re.compile(r"[\W_]+")
_WORD_BREAK = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])")


def looks_secret(name: str) -> bool:
    """Say whether a name, in any spelling, is that of a secret.

    >>> looks_secret("accessToken"), looks_secret("X-Api-Key"), looks_secret("monkey")
    (True, True, False)
    """
    joined = _SEPARATORS.sub("", name).lower()
    if _SUSPICIOUS.search(joined) is None:
        return False
    if joined.removeprefix("x") in _HARMLESS or _COUNT_OF_TOKENS.fullmatch(joined):
        return False
    words = [word.lower() for word in _WORD_BREAK.split(name)]
    return (
        not _SECRET_WORDS.isdisjoint([*words, joined])
        or _SECRET_PARTS.search(joined) is not None
    )
