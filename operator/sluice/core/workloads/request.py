"""Turn resources into requests for the engine: names are resolved, the stores not yet asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sluice.api.kinds.scopecopy import ScopeCopy
from sluice.api.kinds.streamarchive import StreamArchive, StreamArchiveSpec
from sluice.api.kinds.streamcopy import SourceSpec, StreamCopy, StreamCopySpec
from sluice.core.archive.manifest import Maker
from sluice.core.archive.names import Format
from sluice.core.archive.request import ArchiveRequest
from sluice.core.archive.retention import Retention
from sluice.core.copy.planner import (
    PART_BYTES,
    ArchiveChoice,
    CopyRequest,
    Range,
    RangeEnd,
    SourceRequest,
)
from sluice.core.scope.request import ArchiveTo, Rename, RestoreFrom, ScopeRequest, Selector
from sluice.core.values import identity
from sluice.core.values.model import StoreAddress, StreamName
from sluice.core.values.wish import Wish

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from sluice.api.fields.ranges import Bound, RangeSpec
    from sluice.api.fields.scopeplaces import ScopeSource, ScopeTarget
    from sluice.api.fields.selection import StreamSelector
    from sluice.api.fields.stores.part import CABundle
    from sluice.api.kinds.scopecopy import ScopeCopySpec
    from sluice.api.kinds.streamarchive import ArchivedStream
    from sluice.api.kinds.streamstore import StreamStore
    from sluice.api.registry import Copy


CONFIG_MAPS: Final = "_"
"""Prefix of ConfigMaps' folders in the credentials folder. Secrets' folders have none.

No Secret's name begins with it, and the longest ConfigMap's name still fits with it.
"""

Request = CopyRequest | ScopeRequest | ArchiveRequest
"""A request of one of the kinds that drivers work for."""


def request_of(
    resource: Copy,
    *,
    cluster: str,
    part_bytes: int = PART_BYTES,
    tasks: int = 1,
    verify: bool = True,
    run_key: str | None = None,
) -> Request:
    """Return the request of a resource; arguments as those of the functions below."""
    match resource:
        case StreamArchive():
            return archive_request(resource, cluster=cluster, run_key=run_key, verify=verify)
        case ScopeCopy():
            return scope_request(
                resource,
                cluster=cluster,
                part_bytes=part_bytes,
                tasks=tasks,
                verify=verify,
                run_key=run_key,
            )
        case StreamCopy():
            return copy_request(
                resource, cluster=cluster, part_bytes=part_bytes, tasks=tasks, verify=verify
            )


def identity_of(resource: Copy, *, cluster: str) -> str:
    """Return a resource's identity in stores, which all of its runs share.

    Args:
        resource: the resource.
        cluster: tells clusters apart that share a store.
    """
    return identity.copy_id(
        cluster=cluster,
        namespace=resource.metadata.namespace,
        name=resource.metadata.name,
        identity=resource.spec.identity(),
    )


def copy_request(
    copy: StreamCopy,
    *,
    cluster: str,
    part_bytes: int = PART_BYTES,
    tasks: int = 1,
    verify: bool = True,
) -> CopyRequest:
    """Return the request of a StreamCopy.

    Args:
        copy: the resource.
        cluster: tells clusters apart that share a store.
        part_bytes: segments longer than this are divided into parts.
        tasks: number of tasks that will run at once.
        verify: whether staged bytes are compared before they are published.
    """
    spec = copy.spec
    places = _places(spec)
    return CopyRequest(
        copy_id=identity_of(copy, cluster=cluster),
        sources=tuple(
            _source(source, field, places.index((source.store, _choice(source))))
            for field, source in spec.origins
        ),
        target=StreamName(scope=spec.target.scope, stream=spec.target.stream),
        verify=verify,
        seal=spec.target.seal_when_done,
        on_truncation=spec.on_truncation,
        move=spec.source_on_complete == "Delete",
        part_bytes=part_bytes,
        append=spec.target.on_exists == "Append",
        make_scope=spec.target.scope_policy == "CreateIfAbsent",
        follow=spec.follows,
        stop_time=None if spec.stop_when is None else _milliseconds(spec.stop_when.time),
        groups=tuple((group.name, group.made) for group in spec.reader_groups),
        tasks=tasks,
    )


def scope_request(
    copy: ScopeCopy,
    *,
    cluster: str,
    part_bytes: int = PART_BYTES,
    tasks: int = 1,
    verify: bool = True,
    run_key: str | None = None,
) -> ScopeRequest:
    """Return the request of a ScopeCopy; arguments as those of `copy_request`.

    With a schedule, `run_key` is the key of the run. Without a key, the caller has to choose one:
    see `ScopeRequest.as_run`.
    """
    spec = copy.spec
    whose = identity_of(copy, cluster=cluster)
    request = ScopeRequest(
        scope_id=whose,
        series=None if spec.schedule is None else whose,
        source=spec.source.title,
        target=spec.target.title,
        restore=_restored(spec.source),
        archive=_archived(spec.target, _maker(copy, whose)),
        make_scope=spec.target.scope_policy == "CreateIfAbsent",
        include=_selectors(spec.streams.include),
        exclude=_selectors(spec.streams.exclude),
        ephemeral=spec.streams.include_ephemeral,
        rename=tuple(
            Rename(from_prefix=one.from_prefix, to_prefix=one.to_prefix) for one in spec.rename
        ),
        on_exists=spec.on_exists,
        move=spec.source_on_complete == "Delete",
        on_truncation=spec.on_truncation,
        verify=verify,
        part_bytes=part_bytes,
        tasks=tasks,
        follow=spec.follows,
        stop_time=None if spec.stop_when is None else _milliseconds(spec.stop_when.time),
    )
    return request if request.series is None or run_key is None else request.as_run(run_key)


def archive_request(
    archive: StreamArchive,
    *,
    cluster: str,
    run_key: str | None = None,
    verify: bool = True,
) -> ArchiveRequest:
    """Return the request for one run of a StreamArchive. The store's address is not known yet.

    Args:
        archive: the resource.
        cluster: tells clusters apart that share a store.
        run_key: the key of the run, see ArchiveRequest.
        verify: whether objects are read back before the run is recorded.
    """
    spec = archive.spec
    whose = identity_of(archive, cluster=cluster)
    return ArchiveRequest(
        archive_id=whose,
        run_key=run_key,
        source=StreamName(scope=spec.source.scope, stream=spec.source.stream),
        store="",
        path=spec.destination.path,
        format=Format(spec.format),
        verify=verify,
        max_events=spec.most_events,
        on_truncation=spec.on_truncation,
        maker=_maker(archive, whose),
    )


def wish_of(spec: StreamCopySpec | ScopeCopySpec | StreamArchiveSpec) -> Wish | None:
    """Return how a copy is to end, as its spec says at the moment; None if it follows no source."""
    if isinstance(spec, StreamArchiveSpec) or not spec.follows:
        return None
    stop = spec.stop_when
    if stop is None:
        return Wish(cutover=spec.cutover)
    return Wish(
        cutover=spec.cutover, idle_seconds=stop.idle_seconds, bytes=stop.bytes, time=stop.time
    )


def _maker(resource: StreamArchive | ScopeCopy, whose: str) -> Maker:
    """Describe the resource that makes archives, by its identity and its name."""
    meta = resource.metadata
    name = "/".join(filter(None, (meta.namespace, meta.name)))
    return Maker(id=whose, name=f"{resource.kind} {name}")


def retention_of(spec: StreamCopySpec | ScopeCopySpec | StreamArchiveSpec) -> Retention:
    """Return which runs of an archive a spec keeps; all if it has no rules."""
    rules = None if isinstance(spec, StreamCopySpec) else spec.retention
    return (
        Retention()
        if rules is None
        else Retention(keep_last=rules.keep_last, keep_seconds=rules.seconds)
    )


def _selectors(specs: Iterable[StreamSelector]) -> tuple[Selector, ...]:
    return tuple(Selector(type=one.type, value=one.value) for one in specs)


def _restored(source: ScopeSource) -> RestoreFrom | None:
    """Return which runs of archives are read; None if the source is a scope."""
    archive = source.archive
    if archive is None:
        return None
    return RestoreFrom(until=_milliseconds(archive.until), run=archive.run)


def _archived(target: ScopeTarget, maker: Maker) -> ArchiveTo | None:
    """Return how archives are made; None if the target is a scope."""
    made = target.archive
    if made is None:
        return None
    return ArchiveTo(format=Format(made.format), max_events=made.most_events, maker=maker)


def source_stores(spec: StreamCopySpec | ScopeCopySpec | StreamArchiveSpec) -> tuple[str, ...]:
    """List the StreamStores that a copy reads from, in the order of its plan.

    A StreamStore is listed once for all its live streams, and once for each archive's run.
    """
    return tuple(name for name, _ in _places(spec))


def _places(
    spec: StreamCopySpec | ScopeCopySpec | StreamArchiveSpec,
) -> list[tuple[str, ArchiveChoice | None]]:
    """List the places that a plan numbers: StreamStores, and runs of archives in them."""
    origins: Sequence[tuple[str, SourceSpec | ScopeSource | ArchivedStream]] = spec.origins
    return list(dict.fromkeys((source.store, _choice(source)) for _, source in origins))


def _choice(source: SourceSpec | ScopeSource | ArchivedStream) -> ArchiveChoice | None:
    """Return which run of which archive is read; None for a live stream."""
    archive = source.archive if isinstance(source, SourceSpec) else None
    if archive is None:
        return None
    until = _milliseconds(archive.until)
    return ArchiveChoice(path=archive.path, run=archive.run, until=until)


def _milliseconds(moment: datetime | None) -> int | None:
    """Convert a time to milliseconds since 1970."""
    return None if moment is None else round(moment.timestamp() * 1000)


def _source(source: SourceSpec, field: str, place: int) -> SourceRequest:
    """Return the request for one source, whose store has the number `place` in the plan."""
    choice = _choice(source)
    if choice is not None:
        # A name for people: the stream's own name is in the run's manifest.
        name = StreamName(scope=source.store, stream=choice.path)
        return SourceRequest(stream=name, store=place, field=field, archive=choice)
    return SourceRequest(
        stream=StreamName(scope=source.scope, stream=source.stream),
        store=place,
        ranges=tuple(_range(one) for one in source.ranges) or (Range(),),
        field=field,
    )


def _range(spec: RangeSpec) -> Range:
    return Range(begin=_position(spec.from_), end=_position(spec.to))


def _position(bound: Bound) -> RangeEnd:
    if bound.offsets is None:
        return RangeEnd(text=bound.stream_cut)
    return RangeEnd(offsets=tuple((one.segment_id, one.offset) for one in bound.offsets))


def store_address(store: StreamStore) -> StoreAddress:
    """Return the address of a StreamStore's store."""
    entry = store.spec.entry
    return StoreAddress(
        backend=store.spec.kind.name,
        uri=entry.uri,
        secret=entry.secret,
        endpoint=entry.endpoint,
        region=entry.region,
        ca=ca_file(entry.ca) if entry.ca else None,
        server_name=entry.server_name,
        client_certificate=entry.client_certificate,
    )


def ca_file(bundle: CABundle) -> str:
    """Return the file in the credentials folder that holds a bundle of certificates.

    ConfigMaps' folders have the prefix CONFIG_MAPS, so that they differ from Secrets' folders.
    """
    folder = bundle.name if bundle.kind == "Secret" else f"{CONFIG_MAPS}{bundle.name}"
    return f"{folder}/{bundle.key}"
