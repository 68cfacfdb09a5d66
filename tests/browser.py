"""Chromium without a window, told what to do through chromedriver; both must be installed."""

import base64
import json
import socket
import subprocess
import time
import urllib.request
from typing import Any

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1"]


class Browser:
    """One window, in a `with` block."""

    def __enter__(self) -> "Browser":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._root = f"http://127.0.0.1:{port}/session"
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": FLAGS},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        asked = {"alwaysMatch": wanted}
        for _ in range(100):
            try:
                self._session = f"/{self._send('', capabilities=asked)['sessionId']}"
                return self
            except OSError:
                time.sleep(0.2)
        raise TimeoutError("chromedriver must answer within 20 seconds; it did not. Start it by hand to see why.")

    def __exit__(self, *_: object) -> None:
        urllib.request.urlopen(urllib.request.Request(self._root + self._session, method="DELETE")).close()
        self._driver.terminate()
        self._driver.wait()

    def show(self, url: str, *, width: int, scheme: str = "light") -> None:
        """Open a page in a window so many pixels wide, for readers who prefer a light or a dark one."""
        self._cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self._cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._send(self._session + "/url", url=url)

    def ask(self, script: str, *given: Any) -> Any:
        """The value that a script returns, which may be a promise; it is given its `arguments`."""
        return self._send(self._session + "/execute/sync", script=script, args=list(given))

    def log(self) -> list[str]:
        """Messages of the console since it was asked last."""
        return [one["message"] for one in self._send(self._session + "/se/log", type="browser")]

    def press(self, *keys: str) -> None:
        """Press keys, by their names such as ArrowRight or a letter, on what has the focus."""
        for key in keys:
            for kind in ("keyDown", "keyUp"):
                self._cdp("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def enter_frame(self, number: int = 0) -> None:
        """Ask a frame of the page from now on; opening another page leaves it."""
        self._send(self._session + "/frame", id=number)

    def allow_scripts(self, allowed: bool) -> None:
        """Run the scripts of pages that are opened from now on, or do not."""
        self._cdp("Emulation.setScriptExecutionDisabled", value=not allowed)

    def picture(self, *, width: int, height: int) -> bytes:
        """The top of the page as PNG."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        return base64.b64decode(self._cdp("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"])

    def _cdp(self, command: str, **parameters: Any) -> Any:
        return self._send(self._session + "/goog/cdp/execute", cmd=command, params=parameters)

    def _send(self, path: str, **body: Any) -> Any:
        request = urllib.request.Request(
            self._root + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]
