"""From resources to requests: names resolved, nothing observed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core import identity
from sluice.core.model import StoreAddress, StreamName
from sluice.core.planner import PART_BYTES, CopyRequest, Position, Range, SourceRequest
from sluice.core.scope_request import Rename, ScopeRequest, Selector

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sluice.api.ranges import Bound
    from sluice.api.ranges import Range as RangeSpec
    from sluice.api.scopecopy import ScopeCopy, ScopeCopySpec, ScopeSource, StreamSelector
    from sluice.api.streamcopy import Source, StreamCopy, StreamCopySpec
    from sluice.api.streamstore import StreamStore


def copy_request(
    copy: StreamCopy,
    *,
    cluster: str,
    part_bytes: int = PART_BYTES,
    tasks: int = 1,
    verify: bool = True,
) -> CopyRequest:
    """What a StreamCopy asks for.

    Args:
        copy: the resource.
        cluster: tells clusters apart that share a store.
        part_bytes: segments longer than this are divided into parts.
        tasks: how many will run at once.
        verify: whether staged bytes are compared before they are published.
    """
    spec = copy.spec
    stores = source_stores(spec)
    return CopyRequest(
        copy_id=identity.copy_id(
            cluster=cluster,
            namespace=copy.metadata.namespace,
            name=copy.metadata.name,
            identity=spec.identity(),
        ),
        sources=tuple(
            SourceRequest(
                stream=StreamName(scope=source.scope, stream=source.stream),
                store=stores.index(source.store_ref.name),
                ranges=tuple(_range(one) for one in source.ranges) or (Range(),),
                field=field,
            )
            for field, source in spec.origins
        ),
        target=StreamName(scope=spec.target.scope, stream=spec.target.stream),
        verify=verify,
        seal=spec.target.seal_when_done,
        on_truncation=spec.on_truncation,
        move=spec.source_on_complete == "Delete",
        part_bytes=part_bytes,
        append=spec.target.on_exists == "Append",
        tasks=tasks,
    )


def scope_request(
    copy: ScopeCopy,
    *,
    cluster: str,
    part_bytes: int = PART_BYTES,
    tasks: int = 1,
    verify: bool = True,
) -> ScopeRequest:
    """What a ScopeCopy asks for; arguments as those of `copy_request`."""
    spec = copy.spec
    return ScopeRequest(
        scope_id=identity.copy_id(
            cluster=cluster,
            namespace=copy.metadata.namespace,
            name=copy.metadata.name,
            identity=spec.identity(),
        ),
        source=spec.source.scope,
        target=spec.target.scope,
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
    )


def _selectors(specs: Iterable[StreamSelector]) -> tuple[Selector, ...]:
    return tuple(Selector(type=one.type, value=one.value) for one in specs)


def source_stores(spec: StreamCopySpec | ScopeCopySpec) -> tuple[str, ...]:
    """The StreamStores that a copy reads from, each once, in the order of its plan."""
    origins: Sequence[tuple[str, Source | ScopeSource]] = spec.origins
    return tuple(dict.fromkeys(source.store_ref.name for _, source in origins))


def _range(spec: RangeSpec) -> Range:
    return Range(begin=_position(spec.from_), end=_position(spec.to))


def _position(bound: Bound) -> Position:
    if bound.offsets is None:
        return Position(text=bound.stream_cut)
    return Position(offsets=tuple((one.segment_id, one.offset) for one in bound.offsets))


def store_address(store: StreamStore) -> StoreAddress:
    """Where a StreamStore is."""
    pravega = store.spec.pravega
    return StoreAddress(
        backend="pravega",
        uri=pravega.controller_uri,
        secret=pravega.auth.basic.secret_ref.name if pravega.auth else None,
    )
