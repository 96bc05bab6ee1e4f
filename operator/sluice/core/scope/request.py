"""The request for a scope's copy, before the stores are observed."""

from __future__ import annotations

import operator
from typing import Literal

from pydantic import Field

from sluice.core.archive.manifest import Maker
from sluice.core.archive.names import Format
from sluice.core.archive.request import MAX_EVENTS, ArchiveRequest, run_id
from sluice.core.copy.plan import OnTruncation
from sluice.core.copy.planner import PART_BYTES, ArchiveChoice, CopyRequest, SourceRequest
from sluice.core.values import identity
from sluice.core.values.archive_layout import below
from sluice.core.values.model import Frozen, StreamName

OnExists = Literal["Fail", "Skip", "Append"]
"""What to do about streams whose target exists and was not made by this copy."""


ONCE = "once"
"""The run key of every archive of a scope's copy. It makes one run per stream, however often the
copy is requested."""


class Selector(Frozen):
    """Selector of streams by name, by prefix or by tag."""

    type: Literal["Exact", "Prefix", "Tag"]
    value: str


class Rename(Frozen):
    """Replacement of a prefix of source names by a prefix of target names."""

    from_prefix: str
    to_prefix: str


class RestoreFrom(Frozen):
    """Choice of the run that is read of each archive in a folder.

    If the scope was archived on a schedule, its folder has records of the scope's runs. Then one of
    these is chosen, and with it the run of each archive.

    Attributes:
        until: read the last run that holds its stream up to this time or an earlier one, in
            milliseconds since 1970; None for the last run. Of a scope's runs, the last complete
            one is read.
        run: the number of a run of the scope, complete or not; None for any.
    """

    until: int | None = None
    run: int | None = Field(default=None, exclude_if=lambda value: value is None)


class ArchiveTo(Frozen):
    """Format and limits of the archives that streams are put into; see ArchiveRequest."""

    format: Format = Format.SEGMENTS
    max_events: int = MAX_EVENTS
    maker: Maker | None = None


class ScopeRequest(Frozen):
    """Request for a copy of a scope, with stores resolved and nothing observed yet.

    Either scope may be a folder of archives instead. Then the archive of the stream `name` is at
    `folder/name`.

    Attributes:
        scope_id: the identity of the whole copy, 32 hexadecimal digits.
        source, target: the scopes; for archives the path of their folder.
        restore: which runs of the source's archives are read; None for a scope.
        archive: how the target's archives are made; None for a scope.
        make_scope: whether to make the target's scope if there is none.
        include: streams to copy; all streams if it is empty.
        exclude: streams of these that are not copied.
        ephemeral: whether streams of EphemeralStreams are copied as well.
        rename: replacements of prefixes; the first that fits a name holds.
        on_exists: see OnExists.
        move, on_truncation, verify: for each stream, see StreamPlan. A move also deletes the
            source's scope if it is empty at the end.
        part_bytes, tasks: see CopyRequest.
        series: the identity of the resource, if it archives the scope again and again. `scope_id`
            is that of one run then, and the run is recorded in the folder. None for other copies.
        follow: whether the streams, and those that the scope gets later, are followed.
        stop_time: the time in ms at which a copy that follows its sources is to end; None for none.
    """

    scope_id: str
    source: str
    target: str
    restore: RestoreFrom | None = None
    archive: ArchiveTo | None = None
    make_scope: bool = False
    include: tuple[Selector, ...] = ()
    exclude: tuple[Selector, ...] = ()
    ephemeral: bool = False
    rename: tuple[Rename, ...] = ()
    on_exists: OnExists = "Fail"
    move: bool = False
    on_truncation: OnTruncation = "Fail"
    verify: bool = True
    part_bytes: int = PART_BYTES
    tasks: int = Field(default=1, ge=1)
    series: str | None = Field(default=None, exclude_if=lambda value: value is None)
    follow: bool = Field(default=False, exclude_if=operator.not_)
    stop_time: int | None = Field(default=None, exclude=True)  # users may change it

    def as_run(self, key: str) -> ScopeRequest:
        """Return the request for the run with this key, of a scope that is archived repeatedly.

        A second request with the same key makes no second run.

        Raises:
            ValueError: it is another copy.
        """
        if self.series is None:
            raise ValueError("only a scope that is archived repeatedly has runs with keys")
        return self.model_copy(update={"scope_id": run_id(self.series, key)})

    @property
    def copy_id(self) -> str:
        """The identity of the whole copy, by the name that it has in requests of other kinds."""
        return self.scope_id

    def of(self, stream: str, target: str, *, sha256: str | None = None) -> CopyRequest:
        """Give the request for the copy of one stream, as a StreamCopy would make it.

        Args:
            stream: its name in the source's scope.
            target: the name in the target's scope.
            sha256: for a restore, the SHA-256 of the manifest of the archive's run, if a run of the
                scope has chosen it; None to choose it by the time.
        """
        choice = None
        if self.restore is not None:
            path = below(self.source, stream)
            until = self.restore.until if sha256 is None else None
            choice = ArchiveChoice(path=path, until=until, sha256=sha256)
        source = SourceRequest(stream=StreamName(scope=self.source, stream=stream), archive=choice)
        return CopyRequest(
            copy_id=identity.stream_copy_id(self.scope_id, stream),
            sources=(source,),
            target=StreamName(scope=self.target, stream=target),
            verify=self.verify,
            on_truncation=self.on_truncation,
            move=self.move,
            part_bytes=self.part_bytes,
            append=self.on_exists == "Append",
            tasks=self.tasks,
            follow=self.follow,
        )

    def run_of(self, stream: str, target: str, *, store: str = "") -> ArchiveRequest:
        """Give the request for the run of an archive that one stream is put into.

        Args:
            stream: its name in the source's scope.
            target: the name of its archive in the target's folder.
            store: the address of the source's store, for people.

        Raises:
            ValueError: the target is a scope.
        """
        if self.archive is None:
            raise ValueError("streams that are copied to a scope are not archived")
        wanted = ArchiveRequest(
            archive_id=identity.stream_copy_id(self.scope_id, stream),
            maker=self.archive.maker,
            run_key=ONCE,
            source=StreamName(scope=self.source, stream=stream),
            store=store,
            path=below(self.target, target),
            format=self.archive.format,
            verify=self.verify,
            max_events=self.archive.max_events,
            on_truncation=self.on_truncation,
        )
        if self.on_exists == "Append":
            return wanted
        return wanted.model_copy(update={"sole": wanted.copy_id})
