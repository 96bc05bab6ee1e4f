"""The bound on each object that is read as a whole."""

from __future__ import annotations

from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from sluice.archive.objects.s3 import Bucket, S3Keys, S3Objects
from sluice.archive.runs.leases import Lease, delete_all_leases
from sluice.archive.runs.notes import Notes
from sluice.config import StoreTimeouts
from sluice.core.archive.documents import MOST_SHORT
from sluice.core.archive.lease import LeaseWork
from sluice.core.archive.names import NoteName
from sluice.core.values.archive_layout import LEASES
from sluice.errors import ArchiveDamaged, StoreRejected

if TYPE_CHECKING:
    from support.model.memory_objects import MemoryObjects

OWNER = uuid4().hex
LONGER = MOST_SHORT + 100_000


def test_an_object_among_the_leases_is_not_read_whole(objects: MemoryObjects) -> None:
    """A lease is short, and the object may have any length."""
    objects.put(f"{LEASES}{uuid4().hex}", bytes(LONGER))
    with suppress(ArchiveDamaged):
        delete_all_leases(objects, "maker")
    with suppress(ArchiveDamaged), Lease(objects, OWNER, LeaseWork.SWEEP) as lease:
        lease.look()
    assert objects.got
    assert max(objects.got) < 100_000


def test_an_object_in_place_of_the_first_note_is_not_read_whole(objects: MemoryObjects) -> None:
    """Its existence is checked repeatedly."""
    objects.put(str(NoteName(OWNER, 0)), bytes(LONGER))
    with suppress(ArchiveDamaged):
        Notes(objects, OWNER).stand()
    assert max(objects.got) == MOST_SHORT + 1


class Lavish(BaseHTTPRequestHandler):
    """A server that answers a request for ten bytes with ten gigabytes."""

    def do_GET(self) -> None:
        """Answer the request."""
        self.send_response(206)
        self.send_header("Content-Range", "bytes 0-9/100")
        self.send_header("Last-Modified", "Mon, 23 Nov 2026 08:00:00 GMT")
        self.send_header("Content-Length", str(10_000_000_000))
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(bytes(1 << 20))

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def test_a_bucket_that_sends_more_than_was_asked_for_is_left() -> None:
    """The client does not read the excess bytes."""
    with HTTPServer(("127.0.0.1", 0), Lavish) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        bucket = Bucket(name="archives", endpoint=f"http://127.0.0.1:{server.server_port}")
        keys = S3Keys(access="a", secret="s")  # noqa: S106 - no real account
        objects = S3Objects(bucket, keys=keys, timeouts=StoreTimeouts())
        with pytest.raises(StoreRejected, match="more is sent than was asked for"):
            objects.get("heads/1", 0, 10)
        thread.join()
