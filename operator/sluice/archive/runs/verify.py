"""Whether an archive still is what was recorded: every object, every digest, every run."""

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
    """What was found of an archive.

    Attributes:
        head: the SHA-256 of its head, which stands for all that it holds: who has written it down
            elsewhere can tell later whether anybody changed it. None where it cannot be read.
        runs: that were verified.
        objects: data objects that were read.
        bytes: of the source that were in them.
        problems: all that is wrong, by the names of objects.
    """

    head: str | None = None
    runs: tuple[int, ...] = ()
    objects: int = 0
    bytes: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def damaged(self) -> frozenset[int]:
        """Runs that cannot be restored."""
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
        archive: what to read.
        runs: the numbers of those to verify; None for all.
        head: the SHA-256 that its head has to have, if that is known.
        told: of bytes of the source that were compared.

    Raises:
        ArchiveNotFound: there is no archive, or not such a run.
        ArchiveUnsupported: a later version wrote it.
        BackendError: the store does not give an object, which is no finding.
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
    """The manifests that can be read; what is wrong with the others is noted."""
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
    """What is wrong with the run that a run says that it adds to. One may be forgotten by now."""
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
