"""Chromium without a window, driven over a pipe in its DevTools protocol: enough to open a page and use it."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

FOUND = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WHY_NOT = "Chromium is not installed (Debian: apt-get install chromium), so no page can be looked at"

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--remote-debugging-pipe", "--force-color-profile=srgb",
)  # fmt: skip

_KEYS = {
    " ": ("Space", 32), "ArrowLeft": ("ArrowLeft", 37), "ArrowRight": ("ArrowRight", 39), "ArrowUp": ("ArrowUp", 38),
    "ArrowDown": ("ArrowDown", 40), "End": ("End", 35), "Home": ("Home", 36), "PageDown": ("PageDown", 34),
    "PageUp": ("PageUp", 33), "Tab": ("Tab", 9), "Enter": ("Enter", 13),
}  # fmt: skip


class PageError(Exception):
    """A script in the page raised something, or the browser refused a command."""


class Browser:
    """One Chromium with one page."""

    def __init__(self, width: int = 1280, height: int = 720, dark: bool = False, scale: float = 1) -> None:
        assert FOUND is not None, WHY_NOT
        self._profile = tempfile.TemporaryDirectory(prefix="automem-chromium-", ignore_cleanup_errors=True)
        to_browser, from_here = os.pipe()
        from_browser, to_here = os.pipe()

        def wire() -> None:
            # The browser reads commands from 3 and answers on 4; either end may have such a number itself.
            high = fcntl.fcntl(to_browser, fcntl.F_DUPFD, 10), fcntl.fcntl(to_here, fcntl.F_DUPFD, 10)
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._process = subprocess.Popen(
            [FOUND, *_FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"],
            preexec_fn=wire,
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(to_here)
        self._out, self._in = from_here, from_browser
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.problems: list[str] = []
        """Exceptions, errors of the console and violations of the page's policy since the last `open`."""
        self.requests: list[str] = []
        """Addresses that the page asked for since the last `open`."""
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height, scale)
        self.prefer(dark)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser."""
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)
        self._profile.cleanup()

    def call(self, method: str, /, seconds: float = 60, **parameters: Any) -> dict[str, Any]:
        """A command of the protocol, and its answer. Raises `PageError`."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + seconds
        while True:
            answer = self._next(until)
            if answer.get("id") == number:
                if "error" in answer:
                    raise PageError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path: Path, fragment: str = "") -> None:
        """Open a file, and wait until it is loaded."""
        self.problems, self.requests = [], []
        self.call("Page.navigate", url=path.absolute().as_uri() + fragment)
        self.until("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """The value of an expression in the page, awaited. Raises `PageError`."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise PageError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def until(self, condition: str, seconds: float = 30) -> None:
        """Wait until an expression is true, looked at whenever the page is drawn."""
        self.run(
            f"""new Promise((over, not) => {{
                const until = performance.now() + {1000 * seconds};
                const look = () => {{
                    if ({condition}) over();
                    else if (performance.now() > until) not(new Error({json.dumps("never: " + condition)}));
                    else setTimeout(look, 5);
                }};
                look();
            }})"""
        )

    def press(self, key: str, shift: bool = False) -> None:
        """Press a key and let it go."""
        code, number = _KEYS.get(key, (f"Key{key.upper()}", ord(key.upper()[0])))
        event = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": 8 if shift else 0}
        text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **event, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def click(self, selector: str, across: float = 0.5) -> None:
        """Click into an element, so far across it."""
        x, y = self.run(
            f"""(() => {{
                const element = document.querySelector({json.dumps(selector)});
                element.scrollIntoView({{block: "nearest"}});
                const box = element.getBoundingClientRect();
                return [box.x + box.width * {across}, box.y + box.height / 2];
            }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def resize(self, width: int, height: int, scale: float = 1) -> None:
        """The window's size in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )

    def prefer(self, dark: bool) -> None:
        """Light or dark."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, path: Path | None = None, whole: bool = False) -> bytes:
        """A PNG of the window, or of the whole page."""
        options: dict[str, Any] = {"format": "png"}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            options |= {"captureBeyondViewport": True, "clip": {**size, "x": 0, "y": 0, "scale": 1}}
        data = base64.b64decode(self.call("Page.captureScreenshot", **options)["data"])
        if path is not None:
            path.write_bytes(data)
        return data

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            data = os.read(self._in, 1 << 16) if ready else b""
            if not data:
                raise PageError("Chromium does not answer" if not ready else "Chromium ended")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.problems.append(parameters["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.problems.append(str([arg.get("value") for arg in parameters["args"]]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
