"""Notes of a scope that is archived into a folder of archives: its plan, and each stream's result.

They hold the records of `core.workloads.scope_log`, each note in an object of its own.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal

from pydantic import Field

from sluice.core.archive.documents import Document
from sluice.core.values.archive_layout import WORK

_SCOPE: Final = f"{WORK}scope-"
_FOLDER: Final = re.compile(rf"{_SCOPE}([0-9a-f]{{32}})/")
_NAME: Final = re.compile(rf"{_SCOPE}[^/]+/[0-9a-f]{{16}}")


class ScopeNote(Document):
    """Some records, which continue those of the note before.

    Attributes:
        begun: the mark of the row of notes that it belongs to, as in its first note: 32 hexadecimal
            digits.
        records: the records.
        closed: whether this is the last note, and all notes are about to be deleted.
    """

    kind: Literal["sluice.dev/archive-scope-note"] = "sluice.dev/archive-scope-note"
    begun: str = Field(pattern=r"^[0-9a-f]{32}$")
    records: tuple[dict[str, Any], ...] = ()
    closed: bool = False


def scope_notes_prefix(scope_id: str) -> str:
    """Return the prefix of the names of a scope's notes. A sweep of an archive spares them."""
    return f"{_SCOPE}{scope_id}/"


def is_scope_note(name: str) -> bool:
    """Tell whether an object is a note of a scope's copy. Sluice leaves other objects alone."""
    return _NAME.fullmatch(name) is not None


def scope_of_notes(folder: str) -> str | None:
    """Return the identity of the copy whose notes are in a folder; None for other folders."""
    found = _FOLDER.fullmatch(folder)
    return None if found is None else found[1]


def scope_note_name(scope_id: str, number: int) -> str:
    """Return the name of a note. Numbers begin with 0 and leave none out."""
    return f"{scope_notes_prefix(scope_id)}{number:016x}"
