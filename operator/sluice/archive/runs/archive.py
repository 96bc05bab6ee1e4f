"""Read an archive's head and manifests, record runs, and remove runs from the head.

A run becomes visible when a head lists it. A head is made in one step, under a number that is not
taken. So an archive is consistent after a crash of any process at any point.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import zstandard

from sluice.core.archive.documents import MOST_BYTES, MOST_SHORT, decode, encode
from sluice.core.archive.head import Head, RunEntry
from sluice.core.archive.manifest import Manifest, Parent
from sluice.core.archive.names import RunName, head_name, head_number
from sluice.core.values.archive_layout import HEADS
from sluice.core.values.text import size as shown
from sluice.core.values.weight import weight_of_json
from sluice.errors import (
    ArchiveDamaged,
    ArchiveMoved,
    ArchiveNotFound,
    InvalidSpec,
    PlanTooLarge,
)
from sluice.stores.allowance import Held

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.archive.objects.objects import Objects
    from sluice.core.values.model import ArchivedRun


class Archive:
    """An archive in a store of objects.

    Args:
        objects: the objects of the archive.
        most: most bytes of a manifest's JSON that is read.
    """

    def __init__(self, objects: Objects, *, most: int = MOST_BYTES) -> None:
        self.objects = objects
        self._most = most
        self._head = self._manifest = Held()

    def head(self) -> Head | None:
        """Return the head with the highest number; None if there is no archive yet.

        Raises:
            ArchiveDamaged: it cannot be read.
            ArchiveUnsupported: a later version wrote it.
        """
        found = self.signed_head()
        return None if found is None else found[0]

    def signed_head(self) -> tuple[Head, str] | None:
        """Return the head and the SHA-256 of its object, which covers all that the archive holds.

        Raises what `head` raises.
        """
        number = self._last()
        while number is not None:
            name = head_name(number)
            data = self.objects.get(name, 0, MOST_SHORT + 1)
            if data is not None:
                self._head = _holding(data)
                return _read_head(data, number), hashlib.sha256(data).hexdigest()
            # Since the listing, a newer head may have been made and this one swept.
            missing, number = number, self._last()
            if number == missing:
                raise ArchiveDamaged(f"{name} is missing", name=name)
        return None

    def _last(self) -> int | None:
        """Return the highest number of a head; None without any."""
        numbers = (head_number(one.name) for one in self.objects.list(HEADS))
        return max((one for one in numbers if one is not None), default=None)

    def manifest(self, entry: RunEntry) -> Manifest:
        """Return a run's manifest, which has to be the one that the head lists.

        Raises:
            ArchiveDamaged: it is missing, has other bytes, or contradicts itself or the head.
            ArchiveUnsupported: a later version wrote it.
            PlanTooLarge: it is longer than this process reads.
        """
        found, manifest = self._read(entry.name, entry.sha256, entry.size)
        if found.model_copy(update={"verified": entry.verified}) != entry:
            raise ArchiveDamaged(
                f"{entry.name} is of another run than the head says", name=entry.name
            )
        return manifest

    def pinned(self, run: ArchivedRun) -> tuple[RunEntry, Manifest]:
        """Return a run that a plan or an address names, whether the head still lists it or not.

        Returns:
            The run's entry as a head would have it, but with `verified` False, and its manifest.

        Raises:
            ArchiveNotFound: no head lists the run any more, and it was swept.
            ArchiveDamaged: its manifest is missing, has other bytes, or contradicts itself.
            ArchiveUnsupported: a later version wrote it.
            PlanTooLarge: its manifest is longer than this process reads.
        """
        name = str(RunName(run.run, run.sha256))
        if self.objects.look(name) is None:
            head = self.head()
            if head is None or name not in {one.name for one in head.runs}:
                raise run_is_gone(run.run)
        return self._read(name, run.sha256, self._most)

    def _read(self, name: str, sha256: str, size: int) -> tuple[RunEntry, Manifest]:
        """Read a manifest of at most `size` bytes. Return its run's entry, and the manifest."""
        most = min(size, self._most)
        data = self.objects.get(name, 0, most + 1)
        if data is None:
            raise ArchiveDamaged(f"{name} is missing", name=name)
        if len(data) > most == self._most:
            raise _too_long(name, most)
        if len(data) > size or hashlib.sha256(data).hexdigest() != sha256:
            raise ArchiveDamaged(f"{name} holds other bytes than the head says", name=name)
        body = _unpacked(data, name, self._most)
        self._manifest = _holding(body)
        manifest = decode(Manifest, body, name=name)
        return _entry(manifest, data, verified=False), manifest

    def record(self, manifest: Manifest, on: Head | None, *, verified: bool) -> Head:
        """Record a run, whose objects must all exist. It can be restored from then on.

        Recording the same run on the same head again changes nothing.

        Args:
            manifest: the run's manifest, with number and parent as `place` gives them for `on`.
            on: the head that the run follows.
            verified: whether all that the run adds was read back.

        Returns:
            The new head.

        Raises:
            ArchiveMoved: another head was made meanwhile. Nothing changed.
            InvalidSpec: the manifest lists so many objects that readers would refuse it.
            PlanTooLarge: the head would list so many runs that readers would refuse it.
        """
        if (manifest.run, manifest.parent) != place(on):
            raise ArchiveMoved(f"run {manifest.run} does not follow the head that was looked at")
        data = zstandard.ZstdCompressor(write_checksum=True).compress(_encoded(manifest))
        entry = _entry(manifest, data, verified=verified)
        self.objects.put(entry.name, data)
        head = Head(number=manifest.run, runs=(*(on.runs if on else ()), entry))
        return self._move(head, entry)

    def drop_runs(self, runs: Sequence[int], on: Head) -> Head:
        """Make a head without some runs, which cannot be restored then.

        Their objects stay until a sweep deletes them.

        Args:
            runs: numbers of the runs. The head's last run cannot be among them.
            on: the head that lists them.

        Returns:
            The new head.

        Raises:
            ArchiveMoved: another head was made meanwhile. Nothing changed.
            InvalidSpec: the last run is among them.
        """
        if on.runs[-1].run in runs:
            raise InvalidSpec("the last run of an archive is never let go", field="run")
        return self._move(on.without(runs), on.runs[-1])

    def _move(self, head: Head, mine: RunEntry) -> Head:
        """Make the next head, and check that the archive has not gone on without run `mine`."""
        name, data = head_name(head.number), encode(head)
        if len(data) > MOST_SHORT:
            raise PlanTooLarge(
                f"a head of {len(head.runs)} runs would be longer than a reader takes",
                remedy="Let go of runs with `sluice archive retain`, or by spec.retention.",
            )
        # If an answer was lost, the head may be there already.
        if not self.objects.put_new(name, data) and (
            self.objects.get(name, 0, len(data) + 1) != data
        ):
            raise ArchiveMoved(f"{name} was made by another process meanwhile")
        # Old heads are swept long after newer ones count. A process that was stopped for as long
        # may make an old head again. Then the last head does not list this run.
        last = self.head()
        if last is None or (last.number > head.number and mine not in last.runs):
            raise ArchiveMoved(f"{name} was made too late: the archive has gone on")
        return head


def _holding(body: bytes) -> Held:
    """Count the memory of a document that is about to be read, for as long as the result lives."""
    held = Held()
    held.add(2 * weight_of_json(body))  # once as parsed JSON, once as a model
    return held


def _read_head(data: bytes, number: int) -> Head:
    """Decode the head of this number. `data` has at most one byte more than a head may have."""
    name = head_name(number)
    if len(data) > MOST_SHORT:
        raise ArchiveDamaged(f"{name} is no head: it is too long", name=name)
    head = decode(Head, data, name=name)
    if head.number != number:
        raise ArchiveDamaged(f"{name} is head {head.number}", name=name)
    return head


def place(on: Head | None) -> tuple[int, Parent | None]:
    """Return the number and the parent of a run that follows a head."""
    if on is None:
        return 1, None
    last = on.runs[-1]
    return on.number + 1, Parent(run=last.run, sha256=last.sha256)


def run_is_gone(run: int) -> ArchiveNotFound:
    """Return the error for a run that no head lists any more."""
    return ArchiveNotFound(
        f"run {run} of the archive was let go",
        remedy="Restore another run; `sluice archive inspect` shows those that there are.",
    )


def find_run(
    head: Head, *, run: int | None = None, until: int | None = None, sha256: str | None = None
) -> RunEntry:
    """Choose the run to read: the last one that fits.

    Args:
        head: the archive's head.
        run: number of the run; None for any.
        until: latest time, in ms, up to which the run may hold the stream; None for any.
        sha256: the SHA-256 of the run's manifest; None for any.

    Raises:
        ArchiveNotFound: no run fits.
    """
    entries = [
        one
        for one in head.runs
        if (run is None or one.run == run)
        and (until is None or one.time <= until)
        and (sha256 is None or one.sha256 == sha256)
    ]
    if entries:
        return entries[-1]
    there = ", ".join(str(one.run) for one in head.runs[-10:])
    raise ArchiveNotFound(
        f"there is no such run; the archive has {'...' if len(head.runs) > 10 else ''}{there}"  # noqa: PLR2004 - for people
    )


def _entry(manifest: Manifest, data: bytes, *, verified: bool) -> RunEntry:
    """Return a run's entry for a head."""
    sha256 = hashlib.sha256(data).hexdigest()
    return RunEntry(
        run=manifest.run,
        name=str(RunName(manifest.run, sha256)),
        size=len(data),
        sha256=sha256,
        time=manifest.end.time,
        bytes=manifest.bytes,
        events=manifest.events,
        verified=verified,
        work=manifest.work,
        maker=None if manifest.maker is None else manifest.maker.id,
    )


def _encoded(manifest: Manifest) -> bytes:
    """Return the JSON of a manifest. InvalidSpec if it is so long that readers would refuse it."""
    data = encode(manifest)
    if len(data) > MOST_BYTES:
        raise InvalidSpec(
            f"the archive has so many objects that {len(data)} bytes of JSON would list them, and "
            f"at most {MOST_BYTES} are read",
            field="spec.destination.path",
            remedy="Archive the stream at another path; what is recorded at this one stays whole.",
        )
    return data


def _unpacked(data: bytes, name: str, most: int) -> bytes:
    """Decompress a manifest's JSON, unless it would be longer than `most`."""
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= MOST_BYTES:
            raise ArchiveDamaged(f"{name} is no manifest: it would be too long", name=name)
        if size > most:
            raise _too_long(name, most)
        return zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as error:
        raise ArchiveDamaged(f"{name} is damaged: {error}", name=name) from None


def _too_long(name: str, most: int) -> PlanTooLarge:
    """Return the error for a manifest that is longer than this process reads."""
    return PlanTooLarge(
        f"{name} is a manifest of more than {shown(most)}, and no more is read here",
        remedy="Use `sluice archive` and `sluice run`, which read longer ones; nothing was made.",
    )
