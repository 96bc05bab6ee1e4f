"""Release notes: a version's part of the changelog."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from packaging.version import InvalidVersion, Version

from distribution.errors import DistributionError

if TYPE_CHECKING:
    from pathlib import Path

UNRELEASED: Final = "Unreleased"
_HEADING: Final = re.compile(r"^## \[?([^\]\s]+)\]?(?: - \d{4}-\d\d-\d\d)?$", re.MULTILINE)
"""A heading of a version: `## 1.2.3 - 2027-01-31`."""


def notes_of(changelog: Path, version: str) -> str:
    """Return the notes of a version. A commit between releases has those of the next release.

    Raises:
        DistributionError: the version is malformed, or the changelog has nothing about it.
    """
    try:
        wanted = Version(version)
    except InvalidVersion as error:
        raise DistributionError(f"{version!r} is no version such as 1.2.3") from error
    parts = _parts(changelog.read_text(encoding="utf-8"))
    for name in (str(wanted), *([UNRELEASED] if wanted.is_devrelease else [])):
        if parts.get(name):
            return f"# Sluice {version}\n\n{parts[name]}\n"
    raise DistributionError(
        f"{changelog.name} says nothing about {version}: "
        f"give the part of the release the heading '## {version} - YYYY-MM-DD'"
    )


def _parts(text: str) -> dict[str, str]:
    """Return the parts of a changelog by version."""
    _, *rest = _HEADING.split(text)
    return {name: part.strip() for name, part in zip(rest[::2], rest[1::2], strict=True)}
