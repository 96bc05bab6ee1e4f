"""Files with texts that a developer once checked.

UPDATE_GOLDEN=1 .venv/bin/pytest ...    writes them; look at the difference before committing it
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def check(path: Path, text: str) -> None:
    """Compare the file's text with `text`. With UPDATE_GOLDEN set, write it first."""
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert path.read_text() == text, "UPDATE_GOLDEN=1 makes it so, if that is right"
