"""Notes of a scope that is archived into a folder of archives: its plan, and what came of streams.

They are the records of `core.workloads.scope_log`, each in an object of its own.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal

from pydantic import Field

from sluice.core.archive.documents import Document
from sluice.core.values.archive_layout import WORK

_SCOPE: Final = f"{WORK}scope-"
_NAME: Final = re.compile(rf"{_SCOPE}[^/]+/[0-9a-f]{{16}}")


class ScopeNote(Document):
    """Some records, behind those of the note before.

    Attributes:
        begun: the mark of the first note that it belongs to, 32 hexadecimal digits.
        records: they.
        closed: whether no other note follows, and all are about to be deleted.
    """

    kind: Literal["sluice.dev/archive-scope-note"] = "sluice.dev/archive-scope-note"
    begun: str = Field(pattern=r"^[0-9a-f]{32}$")
    records: tuple[dict[str, Any], ...] = ()
    closed: bool = False


def scope_notes_prefix(scope_id: str) -> str:
    """Before the names of the notes of a scope's copy. No sweep of an archive takes them."""
    return f"{_SCOPE}{scope_id}/"


def is_scope_note(name: str) -> bool:
    """Whether an object is a note of a scope's copy. Any other one is somebody else's."""
    return _NAME.fullmatch(name) is not None


def scope_note_name(scope_id: str, number: int) -> str:
    """The name of a note; they count up from 0, and leave no number out."""
    return f"{scope_notes_prefix(scope_id)}{number:016x}"
