"""Chat templates are rendered in a process of their own (template_process.py), which bounds their time and memory."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Lock
from typing import Any

from unmask.errors import UnmaskError

SCRIPT = Path(__file__).with_name("template_process.py")


class Renderer:
    """Starts its process when a template is first rendered, and again after a template has ended it."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.owner = 0  # after a fork the process belongs to the parent
        self.lock = Lock()

    def render(self, template: str, **variables: Any) -> str:
        with self.lock:
            reply = self._ask(json.dumps({"template": template, "variables": variables}))
        if reply is None:
            raise UnmaskError("the chat template was stopped: it computes for too long, or takes too much memory")
        if "error" in reply:
            sentence = " ".join(reply["error"].split())[:300]
            raise UnmaskError(f"the chat template does not accept these messages: {sentence}")
        return reply["text"]

    def _ask(self, request: str) -> dict[str, str] | None:
        """The reply; None if the process has ended instead."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(request + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        if not line.endswith("\n"):
            self.stop()
            return None
        return json.loads(line)

    def _running(self) -> subprocess.Popen[str]:
        if self.process is None or self.owner != os.getpid() or self.process.poll() is not None:
            command = [sys.executable, "-P", str(SCRIPT)]  # -P: the folder of the script holds no modules of its own
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
            )
            self.owner = os.getpid()
        return self.process

    def stop(self) -> None:
        if self.process is not None and self.owner == os.getpid():
            self.process.kill()
            self.process.communicate()
        self.process = None


RENDERER = Renderer()
atexit.register(RENDERER.stop)
