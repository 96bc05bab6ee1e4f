"""An S3 client of its own: signed HTTP requests, with only Python's own library."""

from __future__ import annotations

import hashlib
import hmac
import http.client
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import quote
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from s3gateway import Gateway

_REGION = "us-east-1"
_EMPTY = hashlib.sha256(b"").hexdigest()
_XML = {"s3": "http://s3.amazonaws.com/doc/2006-03-01/"}
_SECONDS = 60


@dataclass(frozen=True)
class PlainS3:
    """A client that lists and reads a bucket of a gateway on this machine.

    Args:
        gateway: the gateway.
        bucket: the bucket.
    """

    gateway: Gateway
    bucket: str

    def list(self, prefix: str, *, after: str, most: int) -> Iterator[tuple[str, int]]:
        """Yield names and sizes of the first objects with a prefix that come after a name."""
        asked = {"list-type": "2", "prefix": prefix, "start-after": after, "max-keys": str(most)}
        root = ET.fromstring(self._get(f"/{self.bucket}", asked))  # noqa: S314 - our own gateway's
        for found in root.iterfind("s3:Contents", _XML):
            yield found.findtext("s3:Key", "", _XML), int(found.findtext("s3:Size", "", _XML))

    def read(self, name: str) -> bytes:
        """Return an object's bytes."""
        return self._get(f"/{self.bucket}/{quote(name)}", {})

    def _get(self, path: str, query: Mapping[str, str]) -> bytes:
        """Return the body of the answer, whose status has to be 200."""
        words = "&".join(f"{key}={quote(value, safe='')}" for key, value in sorted(query.items()))
        host = self.gateway.endpoint.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=_SECONDS)
        connection.request("GET", f"{path}?{words}", headers=self._headers(host, path, words))
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        assert answer.status == http.HTTPStatus.OK, body
        return body

    def _headers(self, host: str, path: str, words: str) -> dict[str, str]:
        """Return the headers of a request with an AWS signature, version 4."""
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        headers = {"host": host, "x-amz-content-sha256": _EMPTY, "x-amz-date": now}
        names = ";".join(headers)
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        request = f"GET\n{path}\n{words}\n{lines}\n{names}\n{_EMPTY}"
        scope = f"{now[:8]}/{_REGION}/s3/aws4_request"
        digest = hashlib.sha256(request.encode()).hexdigest()
        key = f"AWS4{self.gateway.secret}".encode()
        for word in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{digest}"):
            key = hmac.digest(key, word.encode(), "sha256")
        user = f"{self.gateway.access}/{scope}"
        signed = f"Credential={user}, SignedHeaders={names}, Signature={key.hex()}"
        return headers | {"authorization": f"AWS4-HMAC-SHA256 {signed}"}
