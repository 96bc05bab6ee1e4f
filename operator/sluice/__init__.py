"""Sluice: copy, clean up and archive streams declaratively, exactly once."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluice.notebook import NotebookStream

_FILE = Path(__file__).with_name("VERSION")  # wheels and images have it, a checkout has not

__version__ = _FILE.read_text(encoding="utf-8").strip() if _FILE.exists() else "dev"


def open(store: str | None = None, stream: str | None = None, **options: Any) -> NotebookStream:  # noqa: A001 - as `gzip.open`
    """Open a stream to read as a table: a live one, an archived one, or both.

    Args:
        store: the store's address, `tcp://HOST:PORT` or `tls://HOST:PORT`; None for an archive
            alone.
        stream: `SCOPE/STREAM`; None for that of the archive.
        options: `archive`, an address of an archive whose events come before those that the stream
            still has; `secret`, and others of docs/notebooks.md.

    Raises:
        InvalidSpec: an option is not known, or has a wrong value.
        ArchiveNotFound, ArchiveDamaged, ArchiveUnsupported: the archive cannot be read.
        AuthenticationFailed: the files of a Secret are not there.
    """
    # This package is below all layers, so it knows the notebook's module by name only.
    notebook = import_module("sluice.notebook")
    opened: NotebookStream = notebook.open_stream({"store": store, "stream": stream, **options})
    return opened
