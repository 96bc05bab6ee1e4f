"""Verify that an archive still is as recorded: every object, every digest, every run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sluice.archive.formats.rows import Problem, RowReader, rows_of
from sluice.core.archive.names import head_name
from sluice.errors import ArchiveDamaged, ArchiveNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sluice.archive.runs.archive import Archive
    from sluice.core.archive.head import Head, RunEntry
    from sluice.core.archive.manifest import Manifest


@dataclass(kw_only=True)
class ArchiveVerification:
    """The result of the verification of an archive.

    Attributes:
        head: SHA-256 of its head, which covers all that the archive holds. A user who keeps it
            elsewhere can detect any later change. None if the head cannot be read.
        runs: numbers of the runs that were verified.
        objects: how many data objects were read.
        bytes: how many bytes of the source were in them.
        problems: all problems, by the names of objects.
    """

    head: str | None = None
    runs: tuple[int, ...] = ()
    objects: int = 0
    bytes: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def damaged(self) -> frozenset[int]:
        """Numbers of the runs that cannot be restored."""
        return frozenset(run for problem in self.problems for run in problem.runs)


def verify_archive(
    archive: Archive,
    *,
    runs: Sequence[int] | None = None,
    head: str | None = None,
    told: Callable[[int], None] | None = None,
) -> ArchiveVerification:
    """Read an archive and compare it with its manifests.

    Args:
        archive: the archive.
        runs: numbers of the runs to verify; None for all.
        head: the SHA-256 that the head must have, if that is known.
        told: called with numbers of bytes of the source that were compared.

    Raises:
        ArchiveNotFound: there is no archive, or no such run.
        ArchiveUnsupported: a later version wrote it.
        BackendError: the store cannot be read at the moment; that says nothing of the archive.
    """
    found = ArchiveVerification()
    try:
        signed = archive.signed_head()
    except ArchiveDamaged as error:
        found.problems.append(Problem(error.name, error.message, ()))
        return found
    if signed is None:
        raise ArchiveNotFound("there is no archive here")
    last, found.head = signed
    chosen = [one for one in last.runs if runs is None or one.run in runs]
    if unknown := sorted(set(runs or ()) - {one.run for one in chosen}):
        raise ArchiveNotFound(f"the archive has no run {unknown[0]}")
    found.runs = tuple(one.run for one in chosen)
    if head is not None and head != found.head:
        name = head_name(last.number)
        what = f"{name} is another one than was written down: its SHA-256 is {found.head}"
        found.problems.append(Problem(name, what, found.runs))
    rows = rows_of(_manifests(archive, last, chosen, found))
    names = {one.sha256: one.name for row in rows for one in row.objects}
    for row in rows:
        reader = RowReader(archive.objects, row, names)
        reader.run(told)
        found.objects += len(row.objects)
        found.bytes += reader.bytes
        found.problems += reader.problems
    found.problems.sort()
    return found


def _manifests(
    archive: Archive, head: Head, chosen: Sequence[RunEntry], found: ArchiveVerification
) -> list[tuple[RunEntry, Manifest]]:
    """Return the manifests that can be read, and note the problems of the others."""
    manifests = []
    for entry in chosen:
        try:
            manifest = archive.manifest(entry)
        except ArchiveDamaged as error:
            found.problems.append(Problem(error.name, error.message, (entry.run,)))
            continue
        if wrong := _wrong_parent(manifest, head):
            found.problems.append(Problem(entry.name, f"{entry.name} {wrong}", (entry.run,)))
        manifests.append((entry, manifest))
    return manifests


def _wrong_parent(manifest: Manifest, head: Head) -> str | None:
    """Describe the error of a run's parent; None if there is none.

    The parent may be one that the head does not list any more.
    """
    earlier = [one for one in head.runs if one.run < manifest.run]
    parent = manifest.parent
    if parent is None:
        return f"adds to no run, and there is run {earlier[-1].run}" if earlier else None
    if earlier and earlier[-1].run > parent.run:
        return f"adds to run {parent.run}, and there is run {earlier[-1].run} between the two"
    named = next((one for one in earlier if one.run == parent.run), None)
    if named is not None and named.sha256 != parent.sha256:
        return f"adds to a run {parent.run} that is another one than there is"
    return None
