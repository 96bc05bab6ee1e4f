"""Write and read the JSON documents of an archive, and check their versions and sizes."""

from __future__ import annotations

import json
import re
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from sluice.core.values.model import Frozen
from sluice.errors import ArchiveDamaged, ArchiveUnsupported

MAJOR: Final = 1
"""The major version; archives of another one are refused."""

MINOR: Final = 1
"""The minor version; a later one only adds fields, which readers may ignore."""

VERSION: Final = f"{MAJOR}.{MINOR}"

MOST_BYTES: Final = 256 << 20
"""Bytes of the longest JSON of a manifest; a hostile one takes no more memory than that."""

MOST_SHORT: Final = 16 << 20
"""Bytes of the longest JSON of heads and notes, and of manifests where many share the memory.

It is enough for tens of thousands of runs or objects. In Python it takes up to 25 times as much.
"""

MOST_NOTES: Final = 4 * MOST_BYTES
"""Most bytes of all notes of a run. A run whose manifest fits MOST_BYTES stays below: an object
takes less than four times as many bytes in notes as in the manifest."""

_VERSION: Final = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")


class Document(Frozen):
    """A JSON document of an archive.

    Attributes:
        kind: the document's kind; each subclass has its own.
        version: the format's version.
    """

    kind: str
    version: str = VERSION


_Document = TypeVar("_Document", bound=Document)


def encode(document: Document) -> bytes:
    """Return the JSON of a document; equal documents give equal bytes."""
    body = document.model_dump(mode="json", exclude_none=True)
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def decode(model: type[_Document], data: bytes, *, name: str) -> _Document:
    """Read a document.

    Args:
        model: the class that it has to be.
        data: its JSON.
        name: the name of its object, for messages.

    Raises:
        ArchiveUnsupported: it has another major version than MAJOR.
        ArchiveDamaged: it is not such a document, or contradicts itself.
    """
    try:
        body: Any = json.loads(data)
    except (ValueError, RecursionError):
        raise ArchiveDamaged(f"{name} is no JSON", name=name) from None
    kind = model.model_fields["kind"].default
    if not isinstance(body, dict) or body.get("kind") != kind:
        raise ArchiveDamaged(f"{name} is none of the kind {kind}", name=name)
    version = _VERSION.fullmatch(str(body.get("version")))
    if version is None:
        raise ArchiveDamaged(f"{name} names no version", name=name)
    if int(version[1]) != MAJOR:
        raise ArchiveUnsupported(f"{name} is of version {version[0]}, and {VERSION} is known here")
    try:
        # Only a later minor version may have unknown fields.
        return model.model_validate(body, extra="ignore" if int(version[2]) > MINOR else "forbid")
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        what = f"{where}: {first['msg']}" if where else first["msg"]
        raise ArchiveDamaged(f"{name} contradicts itself: {what}", name=name) from None
