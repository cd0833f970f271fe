"""A server that asks for digest authentication, of bodies too."""

from __future__ import annotations

import hashlib
import re

from aiohttp import web

LOGIN, PASSWORD = "reader", "correct horse"
_REALM, _NONCE = "tests", "0123456789abcdef"
_FIELD = re.compile(r'(\w+)="?([^",]+)"?')


def _hashed(*parts: str) -> str:
    return hashlib.sha256(":".join(parts).encode()).hexdigest()


class DigestServer:
    """Answers 401 to what is not signed, and what is by the faults, else 200.

    Give :meth:`handle` to a server of aiohttp.
    """

    def __init__(self, *faults: int) -> None:
        self._faults = iter(faults)
        self.bodies: list[bytes] = []
        """The bodies of signed requests."""

        self.unsigned: list[bytes] = []
        """Those that came without a signature."""

        self.forged = 0
        """The number of requests whose signature was of another body."""

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        fields = dict(_FIELD.findall(request.headers.get("Authorization", "")))
        if not fields:
            self.unsigned.append(body)
            asked = f'Digest realm="{_REALM}", nonce="{_NONCE}", qop="auth-int"'
            headers = {"WWW-Authenticate": f"{asked}, algorithm=SHA-256"}
            return web.Response(status=401, headers=headers)
        if fields["response"] != self._expected(request, fields, body):
            self.forged += 1
            return web.Response(status=403)
        self.bodies.append(body)
        return web.Response(status=next(self._faults, 200))

    @staticmethod
    def _expected(request: web.Request, fields: dict[str, str], body: bytes) -> str:
        secret = _hashed(LOGIN, _REALM, PASSWORD)
        hashed_body = hashlib.sha256(body).hexdigest()
        asked = _hashed(request.method, request.raw_path, hashed_body)
        counted = fields["nc"], fields["cnonce"], fields["qop"]
        return _hashed(secret, _NONCE, *counted, asked)
