"""What is wanted of a scope's copy, before anything is observed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sluice.core.archive.manifest import Maker
from sluice.core.archive.names import Format
from sluice.core.archive.request import MAX_EVENTS, ArchiveRequest
from sluice.core.copy.plan import OnTruncation
from sluice.core.copy.planner import PART_BYTES, ArchiveChoice, CopyRequest, SourceRequest
from sluice.core.values import identity
from sluice.core.values.archive_layout import below
from sluice.core.values.model import Frozen, StreamName

OnExists = Literal["Fail", "Skip", "Append"]
"""What to do about streams whose target is there and is somebody else's."""


ONCE = "once"
"""The key of the only run that a scope's copy makes of a stream, however often it is asked for."""


class Selector(Frozen):
    """Streams by name, by the beginning of their names, or by a tag that they have."""

    type: Literal["Exact", "Prefix", "Tag"]
    value: str


class Rename(Frozen):
    """What the names of targets begin with in place of what the names of sources do."""

    from_prefix: str
    to_prefix: str


class RestoreFrom(Frozen):
    """What is read of the archives in a folder.

    Attributes:
        until: of each the last run that holds its stream up to this time, in ms, or an earlier one;
            None for the last one.
    """

    until: int | None = None


class ArchiveTo(Frozen):
    """How streams are archived into a folder; see ArchiveRequest."""

    format: Format = Format.SEGMENTS
    max_events: int = MAX_EVENTS
    maker: Maker | None = None


class ScopeRequest(Frozen):
    """What somebody wants copied of a scope, with stores resolved and nothing observed yet.

    In the place of either scope there may be a folder of archives: the stream `name` is in the one
    at `folder/name`.

    Attributes:
        scope_id: the identity of the whole copy, 32 hexadecimal digits.
        source, target: the scopes; of archives the path of their folder.
        restore: what is read of the source's archives; None of a scope.
        archive: how the target's archives are made; None of a scope.
        make_scope: whether the target's scope is made if there is none.
        include: what is copied; everything where it is empty.
        exclude: what is not copied of that.
        ephemeral: whether streams of EphemeralStreams count.
        rename: the first that fits a name holds.
        on_exists: see OnExists.
        move, on_truncation, verify: of each stream, see StreamPlan. The source's scope is deleted
            as well after a move if it is empty then.
        part_bytes, tasks: see CopyRequest.
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

    def of(self, stream: str, target: str) -> CopyRequest:
        """The copy of one stream: it is what a StreamCopy would ask for.

        Args:
            stream: its name in the source's scope.
            target: the name in the target's scope.
        """
        choice = None
        if self.restore is not None:
            path = below(self.source, stream)
            choice = ArchiveChoice(path=path, until=self.restore.until)
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
        )

    def run_of(self, stream: str, target: str, *, store: str = "") -> ArchiveRequest:
        """The run of an archive that one stream is put into.

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
