"""List the kinds of resources, one record each.

CRDs, tables, watches, the resync and finalizers follow from these records.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from sluice.api.fields.together import sealed_stays
from sluice.api.kinds.ephemeralstream import EphemeralStream
from sluice.api.kinds.scopecopy import ScopeCopy
from sluice.api.kinds.streamarchive import StreamArchive
from sluice.api.kinds.streamcopy import StreamCopy
from sluice.api.kinds.streamquery import StreamQuery
from sluice.api.kinds.streamstore import StreamStore
from sluice.api.status.archive_status import StreamArchiveStatus
from sluice.api.status.common import ConditionType
from sluice.api.status.copy_status import StreamCopyStatus
from sluice.api.status.ephemeral_status import EphemeralStreamStatus
from sluice.api.status.query_status import StreamQueryStatus
from sluice.api.status.scope_status import ScopeCopyStatus
from sluice.api.status.store_status import StreamStoreStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice.api.fields.common import Resource
    from sluice.api.rules import Rule
    from sluice.api.status.common import ResourceStatus


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of `kubectl get`.

    Attributes:
        name: its heading.
        path: the JSONPath of the value.
        type: its OpenAPI type.
        wide: whether `kubectl` shows it with `-o wide` only.
    """

    name: str
    path: str
    type: str = "string"
    wide: bool = False

    def written(self) -> dict[str, object]:
        """Give the column as an entry of the CustomResourceDefinition."""
        entry: dict[str, object] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return entry | ({"priority": 1} if self.wide else {})


def _ready(part: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{part}'


_READY = (PrinterColumn("Ready", _ready("status")), PrinterColumn("Reason", _ready("reason")))
_AGE = PrinterColumn("Age", ".metadata.creationTimestamp", "date")
_COPIED: Final = (
    PrinterColumn("Source", ".status.source", wide=True),
    PrinterColumn("Target", ".status.target", wide=True),
    PrinterColumn("Size", ".status.progress.size", wide=True),
    PrinterColumn("Events", ".status.progress.events", "integer", wide=True),
    PrinterColumn("Duration", ".status.duration", wide=True),
)
"""The columns about the data of a copy."""


class Lifecycle(StrEnum):
    """How long the work for a resource lasts."""

    FINITE = "Finite"
    """The work ends. It begins again only if a user asks."""
    SCHEDULED = "Scheduled"
    """The work ends, and begins again on a schedule."""
    CONTINUOUS = "Continuous"
    """The work goes on as long as the resource exists."""


@dataclass(frozen=True, slots=True)
class KindSpec:
    """One kind of resource.

    Attributes:
        model: what a user writes.
        status: what the operator reports.
        plural: its name in the API's paths.
        short: its short name for `kubectl`.
        lifecycle: how long the work for a resource without a schedule lasts; see `lifecycle_of`.
        finalizer: its finalizer's name without the group. A resource has it while it keeps
            something in a store, or while other resources need it.
        columns: what `kubectl get` shows.
        conditions: the conditions that it may have, and what each says while it is True.
        rules: what the API server checks of a resource as a whole, besides its name.
        driven: whether drivers carry out plans for it, in Jobs.
        jobs: whether the operator makes Jobs for it: those, or others.
        uses_stores: whether it names StreamStores. The operator protects these while they are used.
    """

    model: type[Resource]
    status: type[ResourceStatus]
    plural: str
    short: str
    lifecycle: Lifecycle
    finalizer: str
    columns: tuple[PrinterColumn, ...]
    conditions: Mapping[ConditionType, str]
    rules: tuple[Rule, ...] = ()
    driven: bool = False
    jobs: bool = False
    uses_stores: bool = True

    @property
    def name(self) -> str:
        """The kind's name, as in a manifest's `kind:`."""
        return self.model.__name__

    def lifecycle_of(self, body: Mapping[str, Any]) -> Lifecycle:
        """Tell how long the work for a resource lasts, from its manifest, which may be invalid."""
        spec = body.get("spec")
        if not isinstance(spec, dict):
            return self.lifecycle
        if spec.get("mode") == "Continuous":
            return Lifecycle.CONTINUOUS
        return Lifecycle.SCHEDULED if spec.get("schedule") is not None else self.lifecycle

    @property
    def suspends(self) -> bool:
        """Whether a user can suspend the work for it: its spec has `suspend`."""
        spec = self.model.model_fields["spec"].annotation
        return spec is not None and "suspend" in spec.model_fields


KINDS: Final = (
    KindSpec(
        model=StreamStore,
        status=StreamStoreStatus,
        plural="streamstores",
        short="sst",
        lifecycle=Lifecycle.CONTINUOUS,
        finalizer="in-use",
        uses_stores=False,
        columns=(
            *_READY,
            PrinterColumn("Users", ".status.inUseBy", "integer"),
            _AGE,
            PrinterColumn("Address", ".spec.pravega.controllerURI", wide=True),
            PrinterColumn("Bucket", ".spec.s3.bucket", wide=True),
            PrinterColumn("Claim", ".spec.volume.claimName", wide=True),
            PrinterColumn("Version", ".status.protocolVersion", "integer", wide=True),
            PrinterColumn("Latency ms", ".status.latencyMilliseconds", "integer", wide=True),
        ),
        conditions={
            ConditionType.READY: "The store answers and accepts the login.",
            ConditionType.RECONCILING: "The operator has not asked the store yet, or asks it "
            "again. Absent otherwise.",
            ConditionType.STALLED: "The StreamStore cannot become ready until its spec, its Secret "
            "or the store is changed. Absent otherwise.",
        },
    ),
    KindSpec(
        model=StreamCopy,
        status=StreamCopyStatus,
        plural="streamcopies",
        short="scopy",
        lifecycle=Lifecycle.FINITE,
        finalizer="staging",
        rules=(sealed_stays("the source is"),),
        driven=True,
        jobs=True,
        columns=(
            *_READY,
            PrinterColumn("Progress", ".status.progress.summary"),
            PrinterColumn("Rate", ".status.progress.rate"),
            _AGE,
            *_COPIED,
            PrinterColumn("ETA s", ".status.progress.etaSeconds", "integer", wide=True),
            PrinterColumn("Attempts", ".status.attempts", "integer", wide=True),
            PrinterColumn("Lag s", ".status.follow.lagSeconds", "integer", wide=True),
        ),
        conditions={
            ConditionType.READY: "The copy is done: the target is complete and readable. With "
            "mode: Continuous also while the target is behind its source by no more than "
            "spec.lagObjectiveSeconds.",
            ConditionType.SUCCEEDED: "The copy is done. False: it failed, and is not retried by "
            "itself. With mode: Continuous, absent until it is done.",
            ConditionType.RECONCILING: "Work is in progress, or waits for the next attempt. "
            "Absent otherwise.",
            ConditionType.STALLED: "The copy cannot continue until the spec, the store or the data "
            "is changed. Absent otherwise.",
            ConditionType.SUSPENDED: "spec.suspend is true, and no pod of the copy runs.",
            ConditionType.VERIFIED: "The staged bytes were read again and equal the source's. With "
            "mode: Continuous, so are those that came until status.follow.provedTo.",
            ConditionType.HOOKS: "The Jobs of spec.hooks that were due have succeeded. False: one "
            "has failed. Absent before one is due.",
        },
    ),
    KindSpec(
        model=ScopeCopy,
        status=ScopeCopyStatus,
        plural="scopecopies",
        short="sccp",
        lifecycle=Lifecycle.FINITE,
        finalizer="staging",
        rules=(sealed_stays("sources are"),),
        driven=True,
        jobs=True,
        columns=(
            *_READY,
            PrinterColumn("Streams", ".status.streams.summary"),
            PrinterColumn("Progress", ".status.progress.summary"),
            PrinterColumn("Rate", ".status.progress.rate"),
            _AGE,
            *_COPIED,
            PrinterColumn("Failed", ".status.streams.failed", "integer", wide=True),
            PrinterColumn("Last success", ".status.lastSuccessTime", "date", wide=True),
            PrinterColumn("Next run", ".status.nextRunTime", wide=True),
            PrinterColumn("ETA s", ".status.progress.etaSeconds", "integer", wide=True),
            PrinterColumn("Attempts", ".status.attempts", "integer", wide=True),
            PrinterColumn("Lag s", ".status.follow.lagSeconds", "integer", wide=True),
        ),
        conditions={
            ConditionType.READY: "The copy is done: every target is complete and readable. With a "
            "schedule: the last run that was due has archived every stream. With mode: Continuous "
            "also while each target of a stream that is followed is behind by no more than "
            "spec.lagObjectiveSeconds.",
            ConditionType.SUCCEEDED: "The copy is done. False: streams could not be copied, or the "
            "whole copy failed. Neither is retried by itself; with a schedule, the next run that "
            "is due begins anew. With mode: Continuous, absent until all streams are done.",
            ConditionType.RECONCILING: "Work is in progress, or waits for the next attempt. "
            "Absent otherwise.",
            ConditionType.STALLED: "The copy cannot continue until the spec, the store or the data "
            "is changed. Absent otherwise.",
            ConditionType.SUSPENDED: "spec.suspend is true, and no pod of the copy runs.",
            ConditionType.VERIFIED: "The staged bytes of each stream were read again and equal its "
            "source's. With mode: Continuous, so are those that came until status.follow.provedTo.",
            ConditionType.HOOKS: "The Jobs of spec.hooks that were due have succeeded. False: one "
            "has failed. Absent before one is due.",
        },
    ),
    KindSpec(
        model=StreamArchive,
        status=StreamArchiveStatus,
        plural="streamarchives",
        short="sarc",
        lifecycle=Lifecycle.FINITE,
        finalizer="staging",
        driven=True,
        jobs=True,
        columns=(
            *_READY,
            PrinterColumn("Progress", ".status.progress.summary"),
            PrinterColumn("Runs", ".status.archive.runs", "integer"),
            PrinterColumn("Last success", ".status.lastSuccessTime", "date"),
            _AGE,
            PrinterColumn("Source", ".status.source", wide=True),
            PrinterColumn("Target", ".status.target", wide=True),
            PrinterColumn("Size", ".status.archive.size", wide=True),
            PrinterColumn("Events", ".status.archive.events", "integer", wide=True),
            PrinterColumn("Duration", ".status.duration", wide=True),
            PrinterColumn("Last run", ".status.lastRunTime", "date", wide=True),
            PrinterColumn("Next run", ".status.nextRunTime", wide=True),
            PrinterColumn("Last drill", ".status.drill.lastSuccessTime", "date", wide=True),
            PrinterColumn("Rate", ".status.progress.rate", wide=True),
        ),
        conditions={
            ConditionType.READY: "The last run that was due is done: the archive holds the stream "
            "up to that run.",
            ConditionType.SUCCEEDED: "The last run is done. False: it failed, and is not retried "
            "by itself. The next run that is due begins anew.",
            ConditionType.RECONCILING: "A run is in progress, or waits for its next attempt. "
            "Absent otherwise.",
            ConditionType.STALLED: "The archive cannot continue until the spec, the store or the "
            "data is changed. Absent otherwise.",
            ConditionType.SUSPENDED: "spec.suspend is true, and no pod of the archive runs.",
            ConditionType.VERIFIED: "The bytes that the last run added were read back and equal "
            "the source's.",
            ConditionType.RESTORE_VERIFIED: "The last restore drill passed. False: a drill found "
            "that a run cannot be restored. Unknown: the last drill could not run. Only with "
            "spec.verify, from the end of the first drill on.",
        },
    ),
    KindSpec(
        model=EphemeralStream,
        status=EphemeralStreamStatus,
        plural="ephemeralstreams",
        short="eps",
        lifecycle=Lifecycle.CONTINUOUS,
        finalizer="streams",
        columns=(
            *_READY,
            PrinterColumn("Streams", ".status.streamCount", "integer"),
            PrinterColumn("Owners", ".status.ownersSummary"),
            _AGE,
            PrinterColumn("Scope", ".spec.scope", wide=True),
            PrinterColumn("Stream", ".spec.stream", wide=True),
            PrinterColumn("Prefix", ".spec.streamPrefix", wide=True),
            PrinterColumn("Store", ".spec.storeRef.name", wide=True),
        ),
        conditions={
            ConditionType.READY: "The streams exist, or were released as requested.",
            ConditionType.RECONCILING: "The operator waits, or makes or deletes streams. "
            "Absent otherwise.",
            ConditionType.STALLED: "The operator cannot continue until the spec, an owner or the "
            "store is changed. Absent otherwise.",
            ConditionType.SUSPENDED: "spec.suspend is true. The operator changes nothing.",
            ConditionType.DRIFTED: "Another program changed the stream, so it differs from the "
            "spec. Absent otherwise.",
        },
    ),
    KindSpec(
        model=StreamQuery,
        status=StreamQueryStatus,
        plural="streamqueries",
        short="squery",
        lifecycle=Lifecycle.CONTINUOUS,
        finalizer="query",
        jobs=True,
        columns=(
            *_READY,
            PrinterColumn("Rows", ".status.progress.rows", "integer"),
            PrinterColumn("Lag", ".status.progress.lag"),
            PrinterColumn("Watermark", ".status.progress.watermark", "date"),
            PrinterColumn("Latency", ".status.progress.latencySummary"),
            _AGE,
            PrinterColumn("Result", ".status.result", wide=True),
            PrinterColumn("Version", ".status.version.number", "integer", wide=True),
            PrinterColumn("Batch", ".status.progress.batch", "integer", wide=True),
            PrinterColumn(
                "Verified", '.status.conditions[?(@.type=="Verified")].status', wide=True
            ),
            PrinterColumn("Attempts", ".status.attempts", "integer", wide=True),
            PrinterColumn("URL", ".status.url", wide=True),
        ),
        conditions={
            ConditionType.READY: "The query runs, and has written a batch. With mode: Once: it has "
            "written all that the sources had when it began.",
            ConditionType.SUCCEEDED: "Only with mode: Once: the query is done. False: it failed.",
            ConditionType.RECONCILING: "The query starts, or waits for its next attempt. Absent "
            "otherwise.",
            ConditionType.STALLED: "The query cannot continue until the spec, the store or the "
            "data is changed. Absent otherwise.",
            ConditionType.SUSPENDED: "spec.suspend is true, and no pod of the query runs.",
            ConditionType.VERIFIED: "The last verification found in each sink the rows that "
            "another engine computes. False: they differ. Unknown: it could not compare them. Only "
            "with spec.verify, from the end of the first one on.",
        },
    ),
)
"""All kinds. Other code iterates over these records."""

Copy = StreamCopy | ScopeCopy | StreamArchive
"""A resource that drivers work for."""

DRIVEN: Final = tuple(kind for kind in KINDS if kind.driven)
"""The kinds that drivers work for."""

WITH_JOBS: Final = tuple(kind for kind in KINDS if kind.jobs)
"""The kinds for which the operator makes Jobs: those, and queries, which plan by themselves."""
