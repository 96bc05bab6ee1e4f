"""A table of links and faults, which a test prints and writes to `build`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parents[3] / "build" / "wire"


class WireTable:
    """The table.

    Args:
        name: name of its file.
        title: meaning of its cells.
    """

    def __init__(self, name: str, title: str) -> None:
        self._name = name
        self._title = title
        self._rows: dict[str, dict[str, str]] = {}

    def note(self, link: str, fault: str, text: str) -> None:
        """Write a cell."""
        self._rows.setdefault(link, {})[fault] = text

    def written(self) -> str:
        """Write the table to its file, in Markdown, and return it."""
        faults = list(dict.fromkeys(fault for row in self._rows.values() for fault in row))
        lines = [
            f"{self._title}:",
            "",
            f"| link | {' | '.join(faults)} |",
            "|" + "---|" * (1 + len(faults)),
            *(
                f"| {link} | {' | '.join(row.get(fault, '-') for fault in faults)} |"
                for link, row in sorted(self._rows.items())
            ),
        ]
        text = "\n".join(lines)
        _FOLDER.mkdir(parents=True, exist_ok=True)
        (_FOLDER / f"{self._name}.md").write_text(text + "\n")
        return text
