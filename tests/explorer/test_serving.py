"""The server of the explorer: what it refuses, what it runs, and what it leaves when it ends."""

import html
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="needs the extra web")
from iclab.commands.serving.runs import Runs
from iclab.store import Store
from tests.browser import Browser
from tests.explorer.pages import NEEDS_BROWSER
from tests.test_workers import alive, children, within

STATE = {"lambda": [0.5, 0.2], "N": 10, "H": 2, "w": 0.05}
RUN = {"view": "staircase", "state": STATE, "seeds": 1}


@dataclass
class Server:
    """A server that is running, and the address that it printed."""

    process: subprocess.Popen
    link: str
    folder: Path

    @property
    def port(self) -> int:
        return int(re.findall(r":(\d+)/", self.link)[0])

    @property
    def headers(self) -> dict[str, str]:
        token = re.findall(r"token=([^&]+)", self.link)[0]
        origin = f"http://127.0.0.1:{self.port}"
        return {"Origin": origin, "X-Iclab-Token": token, "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: Any = None, **changed: str | None) -> tuple[int, Any]:
        """Code and content of the answer to a request of the page, with some headers changed or left out."""
        given: dict[str, Any] = self.headers | {name.replace("_", "-"): value for name, value in changed.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        text = body if isinstance(body, str | bytes | None) else json.dumps(body)
        connection.request(method, path, text, {name: value for name, value in given.items() if value is not None})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        kind = answer.headers.get("Content-Type", "")
        return answer.status, json.loads(content) if kind.startswith("application/json") else content.decode()

    def over(self, number: str) -> dict[str, Any]:
        """A run, once it is over."""
        assert within(120, lambda: self.ask("GET", f"/runs/{number}")[1]["state"] != "running")
        return self.ask("GET", f"/runs/{number}")[1]


def served(folder: Path, *words: str) -> Server:
    line = [sys.executable, "-m", "iclab", "explore", "--serve", "--results", str(folder), *words]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.match(r"page: (http://127\.0\.0\.1:\d+/#token=\S+)", process.stdout.readline())
    assert found, process.communicate()[1]
    return Server(process, found[1], folder)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests of this module."""
    begun = served(tmp_path_factory.mktemp("served") / "results")
    yield begun
    begun.process.send_signal(signal.SIGINT)
    begun.process.communicate(timeout=30)
    assert begun.process.returncode == 0


def test_the_page_is_given_to_anyone_on_this_machine_without_its_token(server: Server) -> None:
    code, page = server.ask("GET", "/", X_Iclab_Token=None, Origin=None)
    assert code == 200
    assert "connect-src 'self'" in html.unescape(page)
    assert server.headers["X-Iclab-Token"] not in page


WRITE = ("POST", "/runs", RUN)
ATTACKS: list[tuple[str, tuple, dict[str, str | None], int]] = [
    ("a name that leads here", ("GET", "/"), {"Host": "evil.example"}, 421),
    ("another port", ("GET", "/"), {"Host": "127.0.0.1:1"}, 421),
    ("a look from another site", ("GET", "/"), {"Sec_Fetch_Site": "cross-site"}, 403),
    ("a look from another port", ("GET", "/"), {"Sec_Fetch_Site": "same-site"}, 403),
    ("no origin", WRITE, {"Origin": None}, 403),
    ("another origin", WRITE, {"Origin": "http://evil.example"}, 403),
    ("no one's origin", WRITE, {"Origin": "null"}, 403),
    ("no token", WRITE, {"X_Iclab_Token": None}, 403),
    ("a wrong token", WRITE, {"X_Iclab_Token": "\xe9" * 32}, 403),
    ("a run without a token", ("GET", "/runs/x"), {"X_Iclab_Token": None}, 403),
    ("a form", WRITE, {"Content_Type": "text/plain"}, 415),
    ("a long body", ("POST", "/runs", "x" * 70_000), {}, 413),
    ("no JSON", ("POST", "/runs", "{"), {}, 422),
    ("a list", ("POST", "/runs", "[]"), {}, 422),
    ("deep JSON", ("POST", "/runs", "[" * 30_000), {}, 422),
    ("bytes", ("POST", "/runs", b"\xff\xfe"), {}, 422),
    ("a field of its own", ("POST", "/runs", {**RUN, "out": "/etc"}), {}, 422),
    ("a key of its own", ("POST", "/runs", {**RUN, "state": {"out": "/etc"}}), {}, 422),
    ("words for a number", ("POST", "/runs", {**RUN, "seeds": "1 --out /"}), {}, 422),
    ("too many seeds", ("POST", "/runs", {**RUN, "seeds": 10**9}), {}, 422),
    ("a number out of range", ("POST", "/runs", {**RUN, "state": {"N": 1e300}}), {}, 422),
    ("no number", ("POST", "/runs", '{"view": "staircase", "state": {"w": NaN}}'), {}, 422),
    ("a number too large for JSON", ("POST", "/runs", '{"view": "staircase", "state": {"w": 1e999}}'), {}, 422),
    ("no view", ("POST", "/runs", {"view": "../../etc"}), {}, 422),
    ("a view that is no text", ("POST", "/runs", {"view": {"a": 1}}), {}, 422),
    ("a view without a study", ("POST", "/runs", {"view": "plan"}), {}, 422),
    ("a state that is text", ("POST", "/runs", {**RUN, "state": "w=1"}), {}, 422),
    ("a path", ("GET", "/../../etc/passwd"), {}, 404),
    ("a path in code", ("GET", "/runs/..%2f..%2fetc"), {}, 404),
    ("an unknown run", ("DELETE", "/runs/x"), {}, 404),
    ("another method", ("PUT", "/runs", RUN), {}, 405),
]


@pytest.mark.parametrize(
    ("request_of", "changed", "code"), [attack[1:] for attack in ATTACKS], ids=[attack[0] for attack in ATTACKS]
)
def test_what_does_not_come_from_the_page_is_refused_in_a_sentence(
    server: Server, request_of: tuple, changed: dict[str, str | None], code: int
) -> None:
    found, said = server.ask(*request_of, **changed)
    assert found == code
    assert re.fullmatch(r"[^\n]{10,400}\.", said["error"])
    assert server.process.poll() is None


def test_a_client_that_never_ends_its_request_keeps_no_one_out(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as slow:
        slow.send(b"GET / HT")
        assert server.ask("GET", "/")[0] == 200


def test_eight_clients_are_answered_two_hundred_times_each(server: Server) -> None:
    def many(_: int) -> set[int]:
        return {server.ask("GET", "/runs/x")[0] for _ in range(200)}

    with ThreadPoolExecutor(8) as pool:
        assert set().union(*pool.map(many, range(8))) == {404}


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Server]:
    """A server of one test, that may be killed."""
    begun = served(tmp_path / "results")
    yield begun
    begun.process.kill()
    begun.process.communicate()


def test_runs_that_are_asked_for_too_often_are_refused(alone: Server) -> None:
    codes = [alone.ask("POST", "/runs", "{}")[0] for _ in range(32)]
    assert codes == [422] * 30 + [429] * 2


LONG = {"view": "abrupt-drop", "state": {"lambda": [0.5, 0.2, 0.1], "N": 100}, "seeds": 30}


@pytest.mark.slow
def test_a_run_is_told_stored_and_laid_over_theory_and_one_waits_for_another(alone: Server) -> None:
    code, run = alone.ask("POST", "/runs", RUN)
    assert code == 202
    assert alone.ask("POST", "/runs", RUN)[0] == 409
    done = alone.over(run["id"])
    assert done["state"] == "done", done["told"]
    (result,) = done["stored"]["staircase"]
    assert result["seeds"] == [0]
    assert result["cases"][0]["state"]["lambda"] == [0.5, 0.2]
    (file,) = alone.folder.glob("staircase-*.nc")
    assert file.exists()


def test_a_cancelled_run_leaves_no_process(alone: Server) -> None:
    run = alone.ask("POST", "/runs", LONG)[1]
    assert within(30, lambda: len(children(alone.process.pid)) > 0)
    begun = children(alone.process.pid)
    code, told = alone.ask("DELETE", f"/runs/{run['id']}")
    assert (code, told["state"]) == (200, "cancelled")
    assert not any(alive(number) for number in begun)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_ends_leaves_no_process(alone: Server, sign: signal.Signals) -> None:
    alone.ask("POST", "/runs", LONG)
    assert within(30, lambda: len(children(alone.process.pid)) > 0)
    begun = children(alone.process.pid)
    time.sleep(3.0)
    alone.process.send_signal(sign)
    alone.process.wait(40)
    assert within(30, lambda: not any(alive(number) for number in begun))


@pytest.mark.slow
def test_a_run_that_takes_too_long_is_ended_and_a_folder_is_served_once(alone: Server, tmp_path: Path) -> None:
    import asyncio

    async def ended() -> dict[str, Any]:
        runs = Runs(tmp_path / "own", limit=2.0)
        run = runs.begin(LONG)
        await run.over.wait()
        return run.shown()

    shown = asyncio.run(ended())
    assert shown["state"] == "failed"
    assert shown["told"].startswith("it was ended after 2 s; finished seeds are kept")
    for words, said in (
        (("--results", str(alone.folder)), "a folder must be served once"),
        (("--results", str(tmp_path / "b"), "--port", str(alone.port)), "--port must be free"),
    ):
        line = [sys.executable, "-m", "iclab", "explore", "--serve", *words]
        done = subprocess.run(line, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert said in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.slow
@NEEDS_BROWSER
def test_a_reader_simulates_what_is_shown(alone: Server, browser: Browser) -> None:
    browser.show("about:blank", width=1000)
    words = "&".join(
        f"{key}={','.join(map(str, value)) if isinstance(value, list) else value}" for key, value in STATE.items()
    )
    browser.show(f"{alone.link.split('&')[0]}&view=staircase&{words}", width=1000)
    shown = "return [document.getElementById('simulate').hidden, document.getElementById('progress').textContent]"
    assert within(20, lambda: browser.ask(shown)[0] is False)
    assert "token" not in browser.ask("return new Promise(r => setTimeout(() => r(location.hash), 800))")
    browser.ask("document.getElementById('run').click()")
    assert within(120, lambda: browser.ask(shown)[1] == "Done, and stored.")
    assert "claims hold" in browser.ask("return document.getElementById('verdicts').textContent")
    assert Store(alone.folder).folder.exists()
    assert browser.log() == []
