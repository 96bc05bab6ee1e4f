"""The contents of an archive of format Segments, read by the rules of docs/archive-format.md.

A witness: it imports nothing of Sluice, and reads the files in which a gateway keeps objects.
"""

from __future__ import annotations

import hashlib
import io
import json
from typing import TYPE_CHECKING, Any

import zstandard

if TYPE_CHECKING:
    from pathlib import Path


def runs_of(folder: Path) -> list[dict[int, str]]:
    """Return the SHA-256 of each segment's bytes by id, for each run that can be restored.

    Raises:
        AssertionError: the archive is not whole.
    """
    heads = sorted((folder / "heads").glob("*"))
    if not heads:
        return []
    head = json.loads(heads[-1].read_text())
    return [_segments(folder, run) for run in head["runs"]]


def names_in(folder: Path, *parts: str) -> list[str]:
    """Return the names of the objects in some folders of an archive, or in all of it."""
    roots = [folder / part for part in parts] or [folder]
    files = (file for root in roots for file in root.rglob("*") if file.is_file())
    return sorted(str(file.relative_to(folder)) for file in files)


def _segments(folder: Path, run: dict[str, Any]) -> dict[int, str]:
    """Return the SHA-256 of each of a run's segments, by id."""
    manifest = json.loads(_unpacked(_object(folder, run)))
    found = {}
    for segment in manifest["segments"]:
        digest, at = hashlib.sha256(), segment["start"]
        for stretch in segment["stretches"]:
            for one in stretch["objects"]:
                assert one["start"] == at
                digest.update(_unpacked(_object(folder, one)))
                at = one["end"]
        assert at == segment["end"]
        found[segment["id"]] = digest.hexdigest()
    return found


def _object(folder: Path, entry: dict[str, Any]) -> bytes:
    """Return the bytes of a listed object."""
    data = (folder / entry["name"]).read_bytes()
    assert (len(data), hashlib.sha256(data).hexdigest()) == (entry["size"], entry["sha256"])
    return data


def _unpacked(data: bytes) -> bytes:
    """Return the bytes that zstd unpacks."""
    reader = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True)
    return reader.read()
