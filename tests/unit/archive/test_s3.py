"""As whom a bucket is asked, by a server that remembers it."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from sluice.archive.s3 import Bucket, S3Keys, S3Objects
from sluice.config import StoreTimeouts

if TYPE_CHECKING:
    from collections.abc import Iterator

THEIRS = S3Keys(access="THEIRS", secret="theirs")  # noqa: S106 - of nobody
EMPTY = (
    b"<ListBucketResult><Name>archives</Name><KeyCount>0</KeyCount>"
    b"<IsTruncated>false</IsTruncated></ListBucketResult>"
)


class Server(HTTPServer):
    """An empty bucket, and the headers of what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.asked: list[dict[str, str]] = []

    @property
    def bucket(self) -> Bucket:
        """The bucket."""
        return Bucket(name="archives", endpoint=f"http://127.0.0.1:{self.server_port}")


class Answer(BaseHTTPRequestHandler):
    """Answers every listing."""

    server: Server

    def do_GET(self) -> None:
        """As HTTP has it."""
        self.server.asked.append({name.lower(): text for name, text in self.headers.items()})
        self.send_response(200)
        self.send_header("Content-Length", str(len(EMPTY)))
        self.end_headers()
        self.wfile.write(EMPTY)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    """Gives a server whose clients have an identity in their environment."""
    with Server() as found, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "OURS")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "ours")
        patch.setenv("AWS_SESSION_TOKEN", "our-token")
        thread = Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("keys", "who", "token"),
    [
        (THEIRS, "Credential=THEIRS/", None),
        (None, "Credential=OURS/", "our-token"),
    ],
)
def test_who_gives_keys_sends_nothing_of_the_environment(
    server: Server, keys: S3Keys | None, who: str, token: str | None
) -> None:
    """Neither its key nor the token that goes with that; without keys it is who we are."""
    objects = S3Objects(server.bucket, keys=keys, timeouts=StoreTimeouts())
    assert list(objects.folders()) == []
    (headers,) = server.asked
    assert who in headers["authorization"]
    assert headers.get("x-amz-security-token") == token
