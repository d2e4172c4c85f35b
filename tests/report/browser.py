"""A headless Chromium over a pipe, spoken to in the DevTools protocol: what a page asks for, says and looks like."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)

# The browser reads from file descriptor 3 and writes to 4.
_WIRES = """
import os, sys
os.dup2(int(sys.argv[1]), 3), os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find() -> str | None:
    """The browser's program, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One browser with one tab. `said` collects console messages and errors, `asked` every request."""

    def __init__(self, process: subprocess.Popen[bytes], write: int, read: int) -> None:
        self.process, self._write, self._read = process, write, read
        self._buffer, self._last, self._session = b"", 0, None
        self.said: list[str] = []
        self.asked: list[str] = []
        self._loaded = 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to one command; events that come before it are collected."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])

    def _next(self, seconds: float = 60.0) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], seconds)[0]:
                raise TimeoutError("the browser did not answer")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise RuntimeError("the browser went away")
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, data: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.said.append(f"exception: {data['exceptionDetails'].get('text')}")
        elif method == "Runtime.consoleAPICalled":
            self.said.append(f"console.{data['type']}: {data['args']}")
        elif method == "Log.entryAdded":
            self.said.append(f"{data['entry']['level']}: {data['entry']['text']}")
        elif method == "Network.requestWillBeSent":
            self.asked.append(data["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loaded += 1

    def open(self, path: Path, *, width: int, height: int = 900, dark: bool = False, script: bool = True) -> None:
        """Load a file as it looks on a screen of that size, and wait until it is drawn."""
        self.said.clear()
        self.asked.clear()
        self.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.media(dark=dark)
        before = self._loaded
        self.call("Page.navigate", url=path.resolve().as_uri())
        while self._loaded == before:
            self._next()
        if script:
            self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def media(self, *, dark: bool = False, paper: bool = False) -> None:
        """Light or dark, screen or print."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="print" if paper else "screen", features=[scheme])

    def value(self, expression: str) -> Any:
        """What an expression comes to in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def picture(self, path: Path | None = None) -> bytes:
        """The whole page as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        data = base64.b64decode(answer["data"])
        if path is not None:
            path.write_bytes(data)
        return data

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])


@contextlib.contextmanager
def started(program: str, folder: Path) -> Iterator[Browser]:
    """A browser with a fresh profile in `folder`, ended with the block."""
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]
    os.close(theirs_in)
    os.close(theirs_out)
    process = subprocess.Popen(
        [sys.executable, "-c", _WIRES, *map(str, high), program, *_FLAGS, f"--user-data-dir={folder}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=high,
        start_new_session=True,
    )
    for end in high:
        os.close(end)
    try:
        yield Browser(process, ours_out, ours_in)
    finally:
        with contextlib.suppress(OSError):
            os.write(ours_out, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
        end = time.monotonic() + 5
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(ours_out)
        os.close(ours_in)
