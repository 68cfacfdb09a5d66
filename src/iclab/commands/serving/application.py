"""The application: the page, and its runs as /runs and /runs/ID."""

import contextlib
import json
import math
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from iclab.commands.serving.guard import HEADERS, Guard, refusal
from iclab.commands.serving.runs import Busy, Runs

__all__ = ["application"]


def application(page: str, runs: Runs, *, port: int, token: str) -> Starlette:
    """The page and its runs, behind a guard."""

    async def shown(_: Request) -> Response:
        return HTMLResponse(page, headers=HEADERS)

    async def begun(request: Request) -> Response:
        try:
            run = runs.begin(_object(await request.body()))
        except Busy:
            return refusal(409, "one run is under way, and others wait until it is done or cancelled.")
        except ValueError as error:
            return refusal(422, str(error))
        return JSONResponse(run.shown(), 202, HEADERS)

    async def asked(request: Request) -> Response:
        run = runs.known.get(request.path_params["id"])
        if run is None:
            return refusal(404, "no run has this number.")
        if request.method == "DELETE":
            await runs.cancel(run)
        return JSONResponse(run.shown(), headers=HEADERS)

    async def missing(*_: Any) -> Response:
        return refusal(404, "there is only the page, /runs and /runs/ID.")

    async def not_so(*_: Any) -> Response:
        return refusal(405, "the page is asked for with GET; runs are begun with POST and ended with DELETE.")

    @contextlib.asynccontextmanager
    async def living(_: Starlette) -> AsyncIterator[None]:
        yield
        await runs.close()

    return Starlette(
        routes=[
            Route("/", shown, methods=["GET"]),
            Route("/runs", begun, methods=["POST"]),
            Route("/runs/{id:str}", asked, methods=["GET", "DELETE"]),
        ],
        middleware=[Middleware(Guard, port=port, token=token)],
        exception_handlers={404: missing, 405: not_so},
        lifespan=living,
    )  # fmt: skip


def _object(body: bytes) -> dict[str, Any]:
    """The object of JSON that a body holds. Raises ValueError for anything else, infinities and NaN among it."""

    def refused(word: str) -> float:
        raise ValueError(f"numbers must be finite; got {word}.")

    try:
        found = json.loads(body, parse_constant=refused)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"a body must be JSON; got {type(error).__name__}.") from None
    if not isinstance(found, dict):
        raise ValueError(f"a body must be an object of JSON; got a {type(found).__name__}.")
    if any(isinstance(value, float) and not math.isfinite(value) for value in found.values()):
        raise ValueError("numbers must be finite; got one that is too large.")
    return found
