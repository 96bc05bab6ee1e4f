"""An archive: the runs that its head lists, and how one more is recorded.

Nothing of a run can be seen before a head lists it, and a head is made in one step, under a number
that nobody has taken. So an archive is whole after a crash anywhere, of anybody.
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
    """An archive in an object store.

    Args:
        objects: where all that is in it lies.
        most: bytes of the longest manifest's JSON that is read.
    """

    def __init__(self, objects: Objects, *, most: int = MOST_BYTES) -> None:
        self.objects = objects
        self._most = most
        self._head = self._manifest = Held()

    def head(self) -> Head | None:
        """The head that counts; None where there is no archive yet.

        Raises:
            ArchiveDamaged: it cannot be read.
            ArchiveUnsupported: a later version wrote it.
        """
        found = self.signed_head()
        return None if found is None else found[0]

    def signed_head(self) -> tuple[Head, str] | None:
        """The same, with the SHA-256 of its object, which stands for all that the archive holds.

        Raises as `head`.
        """
        number = self._last()
        while number is not None:
            name = head_name(number)
            data = self.objects.get(name, 0, MOST_SHORT + 1)
            if data is not None:
                self._head = _holding(data)
                return _read_head(data, number), hashlib.sha256(data).hexdigest()
            # Another one may have been made since it was listed, and this one swept.
            missing, number = number, self._last()
            if number == missing:
                raise ArchiveDamaged(f"{name} is missing", name=name)
        return None

    def _last(self) -> int | None:
        """The number of the head that counts."""
        numbers = (head_number(one.name) for one in self.objects.list(HEADS))
        return max((one for one in numbers if one is not None), default=None)

    def manifest(self, entry: RunEntry) -> Manifest:
        """A run's manifest, if it is the one that the head lists.

        Raises:
            ArchiveDamaged: it is missing, another one, or contradicts itself.
            ArchiveUnsupported: a later version wrote it.
            PlanTooLarge: it is longer than is read here.
        """
        found, manifest = self._read(entry.name, entry.sha256, entry.size)
        if found.model_copy(update={"verified": entry.verified}) != entry:
            raise ArchiveDamaged(
                f"{entry.name} is of another run than the head says", name=entry.name
            )
        return manifest

    def pinned(self, run: ArchivedRun) -> tuple[RunEntry, Manifest]:
        """A run that somebody has written down, whether the head still lists it or not.

        Returns:
            What a head would say of it, but for whether it was verified; and its manifest.

        Raises:
            ArchiveNotFound: it was let go, and swept.
            ArchiveDamaged: it is missing, another one, or contradicts itself.
            ArchiveUnsupported: a later version wrote it.
            PlanTooLarge: it is longer than is read here.
        """
        name = str(RunName(run.run, run.sha256))
        if self.objects.look(name) is None:
            head = self.head()
            if head is None or name not in {one.name for one in head.runs}:
                raise let_go(run.run)
        return self._read(name, run.sha256, self._most)

    def _read(self, name: str, sha256: str, size: int) -> tuple[RunEntry, Manifest]:
        """A manifest of at most `size` bytes, and what a head would say of it."""
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
        """Record a run, whose objects are all there. It can be restored from then on.

        Recording the same run on the same head once more changes nothing.

        Args:
            manifest: of the run, made with the `place` that it has after this head.
            on: the head that it follows.
            verified: whether all that it adds was read back.

        Raises:
            ArchiveMoved: another run was recorded meanwhile; nothing changed.
            InvalidSpec: it lists so many objects that nobody would read its manifest.
        """
        if (manifest.run, manifest.parent) != place(on):
            raise ArchiveMoved(f"run {manifest.run} does not follow the head that was looked at")
        data = zstandard.ZstdCompressor(write_checksum=True).compress(_encoded(manifest))
        entry = _entry(manifest, data, verified=verified)
        self.objects.put(entry.name, data)
        head = Head(number=manifest.run, runs=(*(on.runs if on else ()), entry))
        return self._move(head, entry)

    def forget(self, runs: Sequence[int], on: Head) -> Head:
        """Let go of runs, which cannot be restored from then on. Their objects stay until swept.

        Args:
            runs: by number; the last one of the head cannot be among them.
            on: the head that lists them.

        Raises:
            ArchiveMoved: something was recorded meanwhile; nothing changed.
            InvalidSpec: the last run is among them.
        """
        if on.runs[-1].run in runs:
            raise InvalidSpec("the last run of an archive is never let go", field="run")
        return self._move(on.without(runs), on.runs[-1])

    def _move(self, head: Head, mine: RunEntry) -> Head:
        """Make the next head, which lists a run."""
        name, data = head_name(head.number), encode(head)
        if len(data) > MOST_SHORT:
            raise PlanTooLarge(
                f"a head of {len(head.runs)} runs would be longer than anybody reads",
                remedy="Let go of runs with `sluice archive retain`, or by spec.retention.",
            )
        # Where an answer was lost, ours may be there already.
        if not self.objects.put_new(name, data) and (
            self.objects.get(name, 0, len(data) + 1) != data
        ):
            raise ArchiveMoved(f"{name} was made by somebody else meanwhile")
        # Heads are swept long after they count. Whoever was stopped for as long makes an old one
        # again: then it is not among those that the last one knows of.
        last = self.head()
        if last is None or (last.number > head.number and mine not in last.runs):
            raise ArchiveMoved(f"{name} was made too late: the archive has gone on")
        return head


def _holding(body: bytes) -> Held:
    """Count a document that is about to be read, in place of the one that was read before."""
    held = Held()
    held.add(2 * weight_of_json(body))  # as JSON gives it, and as a model
    return held


def _read_head(data: bytes, number: int) -> Head:
    """The head of this number, of which `data` are as many bytes as it may have, and one more."""
    name = head_name(number)
    if len(data) > MOST_SHORT:
        raise ArchiveDamaged(f"{name} is no head: it is too long", name=name)
    head = decode(Head, data, name=name)
    if head.number != number:
        raise ArchiveDamaged(f"{name} is head {head.number}", name=name)
    return head


def place(on: Head | None) -> tuple[int, Parent | None]:
    """The number and the parent of a run that follows a head."""
    if on is None:
        return 1, None
    last = on.runs[-1]
    return on.number + 1, Parent(run=last.run, sha256=last.sha256)


def let_go(run: int) -> ArchiveNotFound:
    """The error that a run is not there any more."""
    return ArchiveNotFound(
        f"run {run} of the archive was let go",
        remedy="Restore another run; `sluice archive inspect` shows those that there are.",
    )


def find_run(head: Head, *, run: int | None = None, until: int | None = None) -> RunEntry:
    """The run to read.

    Args:
        head: of the archive.
        run: its number; None for the last one.
        until: the last one of those that hold the stream up to this time, in ms, or an earlier one.

    Raises:
        ArchiveNotFound: there is none.
    """
    entries = [
        one
        for one in head.runs
        if (run is None or one.run == run) and (until is None or one.time <= until)
    ]
    if entries:
        return entries[-1]
    there = ", ".join(str(one.run) for one in head.runs[-10:])
    raise ArchiveNotFound(
        f"there is no such run; the archive has {'...' if len(head.runs) > 10 else ''}{there}"  # noqa: PLR2004 - for people
    )


def _entry(manifest: Manifest, data: bytes, *, verified: bool) -> RunEntry:
    """A run as a head lists it."""
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
    """The JSON of a manifest, if it is none that readers would refuse. InvalidSpec."""
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
    """A manifest's JSON. What would be longer than `most` is not unpacked."""
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
    """The error that a manifest is longer than is read here."""
    return PlanTooLarge(
        f"{name} is a manifest of more than {shown(most)}, and no more is read here",
        remedy="Use `sluice archive` and `sluice run`, which read longer ones; nothing was made.",
    )
