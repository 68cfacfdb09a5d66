"""The guard of the server: requests of this page on this machine pass, all others are refused in a sentence."""

import hmac
import time
from collections import deque
from typing import Any

from starlette.responses import JSONResponse

__all__ = ["HEADERS", "LARGEST", "Guard", "refusal"]

LARGEST = 64_000  # bytes of a body
WRITES, WINDOW = 30, 60.0  # requests that change something, in so many seconds
HEADERS = {
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}  # fmt: skip


class Refused(Exception):
    """A request that is not answered: its code, and why."""

    def __init__(self, code: int, why: str) -> None:
        self.code, self.why = code, why


def refusal(code: int, why: str) -> JSONResponse:
    """The answer to a request that is refused."""
    return JSONResponse({"error": why}, code, HEADERS)


class Guard:
    """Middleware that knows the address of the server and its token."""

    def __init__(self, app: Any, *, port: int, token: str) -> None:
        self.app = app
        self.host = f"127.0.0.1:{port}"
        self.token = token
        self.writes: deque[float] = deque(maxlen=WRITES)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            self._admit(scope)
            body = await _body(receive) if scope["method"] == "POST" else b""
        except Refused as refused:
            await refusal(refused.code, refused.why)(scope, receive, send)
            return
        told = False

        async def once() -> dict[str, Any]:
            nonlocal told
            if told:
                return await receive()
            told = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, once, send)

    def _admit(self, scope: Any) -> None:
        """Raises Refused unless a request comes from this page, and one that is more than a look has the token."""
        headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        known = dict(headers)
        if [value for name, value in headers if name == "host"] != [self.host]:
            raise Refused(421, f"the host must be {self.host}.")
        if known.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refused(403, "a request must come from this page; got one of another site.")
        if scope["path"] == "/" and scope["method"] in ("GET", "HEAD"):
            return
        if not hmac.compare_digest(known.get("x-iclab-token", "").encode("latin-1"), self.token.encode()):
            raise Refused(403, "a request must have the token of the address that iclab printed.")
        if scope["method"] in ("GET", "HEAD"):
            return
        if known.get("origin") != f"http://{self.host}":
            raise Refused(403, f"the origin must be http://{self.host}.")
        kind = known.get("content-type", "").partition(";")[0].strip()
        if scope["method"] == "POST" and kind != "application/json":
            raise Refused(415, "a body must be of type application/json.")
        self._count()

    def _count(self) -> None:
        now = time.monotonic()
        if len(self.writes) == WRITES and now - self.writes[0] < WINDOW:
            raise Refused(429, f"at most {WRITES} runs may be asked for or ended in {WINDOW:g} s. Wait a little.")
        self.writes.append(now)


async def _body(receive: Any) -> bytes:
    """The body of a request. Raises Refused for one that is too large."""
    found = b""
    while True:
        message = await receive()
        found += message.get("body", b"")
        if len(found) > LARGEST:
            raise Refused(413, f"a body must have at most {LARGEST} bytes.")
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            return found
