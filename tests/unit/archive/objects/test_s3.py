"""The identity of a request to a bucket, with a server that records it."""

from __future__ import annotations

import hashlib
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from sluice.archive.objects.s3 import Bucket, S3Keys, S3Objects
from sluice.config import StoreTimeouts
from sluice.errors import SluiceError

if TYPE_CHECKING:
    from collections.abc import Iterator

THEIRS = S3Keys(access="THEIRS", secret="theirs")  # noqa: S106 - no real account
EMPTY = (
    b"<ListBucketResult><Name>archives</Name><KeyCount>0</KeyCount>"
    b"<IsTruncated>false</IsTruncated></ListBucketResult>"
)


class Server(HTTPServer):
    """A server of an empty bucket that records requests and their headers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.asked: list[dict[str, str]] = []
        self.paths: list[str] = []

    @property
    def bucket(self) -> Bucket:
        """Return the bucket."""
        return Bucket(name="archives", endpoint=f"http://127.0.0.1:{self.server_port}")


class Answer(BaseHTTPRequestHandler):
    """A handler that answers each listing, and takes each object."""

    server: Server

    def do_GET(self) -> None:
        """Answer a listing."""
        self._answer(EMPTY)

    def do_PUT(self) -> None:
        """Take an object."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(b"")

    def do_CONNECT(self) -> None:
        """Refuse to connect further."""
        self._answer(b"", code=502)

    def _answer(self, body: bytes, *, code: int = 200) -> None:
        self.server.asked.append({name.lower(): text for name, text in self.headers.items()})
        self.server.paths.append(f"{self.command} {self.path.partition('?')[0]}")
        self.send_response(code)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    """Yield a server whose clients have an identity in their environment."""
    with Server() as found, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "OURS")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "ours")
        patch.setenv("AWS_SESSION_TOKEN", "our-token")
        thread = Thread(target=found.serve_forever, args=(0.01,))
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
    """Neither its key nor its token is sent. Without keys the process has its own identity."""
    objects = S3Objects(server.bucket, keys=keys, timeouts=StoreTimeouts())
    assert list(objects.folders()) == []
    (headers,) = server.asked
    assert who in headers["authorization"]
    assert headers.get("x-amz-security-token") == token


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_ENDPOINT", "http://127.0.0.1:1"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1"),
        ("AWS_PROXY_URL", "http://127.0.0.1:1"),
        ("AWS_BUCKET", "others"),
        ("AWS_REGION", "others"),
        ("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true"),
        ("AWS_S3_EXPRESS", "true"),
        ("AWS_SKIP_SIGNATURE", "true"),
        ("AWS_UNSIGNED_PAYLOAD", "true"),
        ("AWS_REQUEST_PAYER", "true"),
        ("AWS_CONDITIONAL_PUT", "disabled"),
        ("AWS_ALLOW_HTTP", "false"),
        ("AWS_TIMEOUT", "1 ms"),
    ],
)
def test_the_environment_does_not_say_where_objects_go(
    server: Server, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """Each request is signed, and an object is made only if none exists."""
    monkeypatch.setenv(name, value)
    objects = S3Objects(server.bucket, keys=THEIRS, timeouts=StoreTimeouts())
    assert objects.folders() == ()
    objects.put("a", b"1")
    assert objects.put_new("b", b"2")
    assert server.paths == ["GET /archives", "PUT /archives/a", "PUT /archives/b"]
    assert all("/us-east-1/s3/" in one["authorization"] for one in server.asked)
    assert not any("x-amz-request-payer" in one for one in server.asked)
    digests = [one["x-amz-content-sha256"] for one in server.asked]
    assert digests[1:] == [hashlib.sha256(data).hexdigest() for data in (b"1", b"2")]
    assert server.asked[-1]["if-none-match"] == "*"


@pytest.mark.parametrize("name", ["AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
def test_a_bucket_without_an_endpoint_is_amazons(
    server: Server, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The environment cannot name another one, but a proxy is used."""
    monkeypatch.setenv(name, "https://127.0.0.1:1")
    monkeypatch.setenv("HTTPS_PROXY", server.bucket.endpoint or "")
    bucket = Bucket(name="archives", region="nowhere-1")
    with pytest.raises(SluiceError, match="amazonaws"):
        S3Objects(bucket, keys=THEIRS, timeouts=StoreTimeouts(call=0.1)).folders()
    assert set(server.paths) == {"CONNECT s3.nowhere-1.amazonaws.com:443"}


def test_an_error_names_the_place_as_people_write_it() -> None:
    """It names neither a class of Python nor the library."""
    bucket = Bucket(name="archives", prefix="team", endpoint="http://127.0.0.1:1")
    objects = S3Objects(bucket, keys=THEIRS, timeouts=StoreTimeouts(connect=0.1, call=0.1))
    for act, place in ((lambda: objects.look("a"), "a"), (objects.folders, "its list of objects")):
        with pytest.raises(SluiceError) as caught:
            act()
        assert caught.value.message.startswith(f"s3://archives/team: {place}: ")
        assert "Generic S3 error" not in caught.value.message
