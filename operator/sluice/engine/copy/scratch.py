"""Find and delete the scratch stream of a restore drill, by its name and by its tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.core.values import identity
from sluice.errors import ScopeNotFound, StreamNotFound

if TYPE_CHECKING:
    from sluice.core.values.model import StreamName
    from sluice.stores.base import Store
    from sluice.stores.reading import Stream, Topology


def exists(name: StreamName, store: Topology) -> bool:
    """Tell whether a scratch stream exists. A stream that no copy has made is none."""
    return _scratch(name, store) is not None


def drop(name: StreamName, store: Store) -> bool:
    """Delete a scratch stream; False if there is none. This is safe to repeat.

    No copy to it may be at work: its StreamCopy has to be gone.

    Raises:
        StoreRejected: the store refuses.
    """
    stream = _scratch(name, store)
    if stream is None:
        return False
    try:
        if not stream.sealed:
            store.seal_stream(name)
        return store.delete_stream(name)
    except StreamNotFound:
        return False


def _scratch(name: StreamName, store: Topology) -> Stream | None:
    """Return the stream, if it is one that a copy of Sluice made."""
    try:
        stream = store.describe(name)
    except (ScopeNotFound, StreamNotFound):
        return None
    return stream if stream is not None and identity.is_copy(stream.config.tags) else None
