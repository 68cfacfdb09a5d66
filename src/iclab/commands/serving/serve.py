"""Serving: a port of this machine alone, one server a folder, the address with its token, until it is interrupted."""

import contextlib
import os
import secrets
import socket
import webbrowser
from collections.abc import Iterator
from pathlib import Path

from iclab.files import installing
from iclab.numerics import require

__all__ = ["serve"]

CONNECTIONS, PATIENCE = 32, 10  # at once; seconds that an idle one is kept
LINE = 16_384  # bytes of the head of a request


def serve(page: str, address: str, folder: Path, *, port: int | None, browse: bool) -> int:
    """Serve a page, which opens at an address and stores runs into a folder. Returns the exit code.

    Raises ValueError where a port or the folder is served already, ImportError where the extra is missing.
    """
    try:
        import uvicorn

        from iclab.commands.serving.application import application
    except ImportError as error:
        raise ImportError(
            f"--serve needs Starlette and uvicorn; {error}. Install them with {installing('web')}."
        ) from None
    from iclab.commands.serving.runs import Runs

    with _listening(port) as (listener, taken), _alone(folder, taken):
        token = secrets.token_urlsafe(24)
        app = application(page, Runs(folder), port=taken, token=token)
        link = f"http://127.0.0.1:{taken}/#token={token}&{address}"
        print(f"page: {link}\nIt is served to this machine alone; Ctrl-C ends it.", flush=True)
        if browse:
            webbrowser.open(link)
        settings = uvicorn.Config(
            app, log_level="error", access_log=False, limit_concurrency=CONNECTIONS, timeout_keep_alive=PATIENCE,
            timeout_graceful_shutdown=PATIENCE, server_header=False, h11_max_incomplete_event_size=LINE,
        )  # fmt: skip
        with contextlib.suppress(KeyboardInterrupt):  # which is how it ends
            uvicorn.Server(settings).run(sockets=[listener])
    return 0


@contextlib.contextmanager
def _listening(port: int | None) -> Iterator[tuple[socket.socket, int]]:
    """A socket of this machine, at a port or at any that is free. Raises ValueError for one that is taken."""
    require(port is None or 0 <= port < 65536, f"--port must be from 0 to 65535; got {port}.")
    listener = socket.socket()
    with contextlib.closing(listener):
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port or 0))
        except OSError as error:
            raise ValueError(f"--port must be free; got {port} ({error.strerror}). Leave it out for any.") from None
        listener.listen(CONNECTIONS)  # who comes before the server is ready waits
        yield listener, listener.getsockname()[1]


@contextlib.contextmanager
def _alone(folder: Path, port: int) -> Iterator[None]:
    """A folder that this server alone serves. Raises ValueError where another one does."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # of systems that lock otherwise; the store takes several writers
        yield
        return
    path = folder / ".explorer"
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise ValueError(
                f"a folder must be served once; got {folder}, which another explorer serves ({file.read().strip()}). "
                "Open its address, or name another folder with --results."
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()}, port {port}\n")
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
