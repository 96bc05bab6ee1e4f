"""A receiver of CloudEvents, as a process. It records each request, and answers as told.

Run as a program: `python sink.py FILE STATUS...` prints its port, appends one JSON line for each
request to FILE, and answers with the statuses in turn, the last one for ever.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECONDS = 240.0


@dataclass(frozen=True)
class Receiver:
    """A running receiver.

    Attributes:
        port: port on 127.0.0.1 at which it listens.
        file: the file of the received requests.
    """

    port: int
    file: Path

    @property
    def url(self) -> str:
        """The address for events."""
        return f"http://127.0.0.1:{self.port}/sluice?from=test"

    def got(self) -> list[dict[str, Any]]:
        """Return the requests so far: `path`, `headers` and `body` each."""
        if not self.file.exists():
            return []
        return [json.loads(line) for line in self.file.read_text(encoding="utf-8").splitlines()]

    def wait(self, number: int) -> list[dict[str, Any]]:
        """Wait until at least `number` requests came, and return all."""
        end = time.monotonic() + _SECONDS
        while len(found := self.got()) < number:
            if time.monotonic() > end:
                raise AssertionError(f"{len(found)} of {number} requests came: {found}")
            time.sleep(0.05)
        return found


@contextmanager
def receiver(folder: Path, *statuses: int) -> Iterator[Receiver]:
    """Yield a receiver that answers with these HTTP statuses in turn, the last one for ever."""
    file = folder / "events.jsonl"
    words = [sys.executable, __file__, str(file), *map(str, statuses or (202,))]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Receiver(int(process.stdout.readline()), file)
        finally:
            process.terminate()


class _Handler(BaseHTTPRequestHandler):
    file: Path
    statuses: list[int]

    def do_POST(self) -> None:
        """Record the request, and answer."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        line = {"path": self.path, "headers": dict(self.headers), "body": json.loads(body)}
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main() -> None:
    """Serve until the process is ended."""
    _Handler.file, _Handler.statuses = Path(sys.argv[1]), [int(word) for word in sys.argv[2:]]
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
