"""The JSON of an archive's manifests and heads, and which versions of it are read."""

from __future__ import annotations

import json
import re
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from sluice.core.values.model import Frozen
from sluice.errors import ArchiveDamaged, ArchiveUnsupported

MAJOR: Final = 1
"""Archives of another major version are refused."""

MINOR: Final = 1
"""A later minor version has more fields, which can be left out."""

VERSION: Final = f"{MAJOR}.{MINOR}"

MOST_BYTES: Final = 256 << 20
"""The longest JSON of a manifest: one that was made to be huge costs no more memory."""

MOST_SHORT: Final = 16 << 20
"""The longest JSON of heads and notes, and of manifests where memory is for many: of tens of
thousands of runs or objects. As Python has it, it takes up to 25 times as much."""

MOST_NOTES: Final = 4 * MOST_BYTES
"""Bytes of all notes of a run. One that can be recorded has fewer: an object takes less than four
times as much in them as in the manifest."""

_VERSION: Final = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")


class Document(Frozen):
    """What is written as JSON of its own.

    Attributes:
        kind: what it is; each subclass has its own.
        version: of the format.
    """

    kind: str
    version: str = VERSION


_Document = TypeVar("_Document", bound=Document)


def encode(document: Document) -> bytes:
    """The JSON of a document: equal ones give equal bytes."""
    body = document.model_dump(mode="json", exclude_none=True)
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


def decode(model: type[_Document], data: bytes, *, name: str) -> _Document:
    """Read a document.

    Args:
        model: what it has to be.
        data: its JSON.
        name: of its object, for messages.

    Raises:
        ArchiveUnsupported: its major version is not ours.
        ArchiveDamaged: it is something else, or contradicts itself.
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
        # In our own version nothing is unknown.
        return model.model_validate(body, extra="ignore" if int(version[2]) > MINOR else "forbid")
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        what = f"{where}: {first['msg']}" if where else first["msg"]
        raise ArchiveDamaged(f"{name} contradicts itself: {what}", name=name) from None
