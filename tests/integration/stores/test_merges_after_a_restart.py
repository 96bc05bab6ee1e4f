"""Merged segments after a kill and a restart of the store."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from sluice.config import Settings
from sluice.core.values.model import StoreAddress, StreamName
from sluice.engine.staging.clearing import clear_names
from sluice.errors import NoSuchSegment
from sluice.stores.connect import connect
from sluice.stores.writing import CompareAndSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from localstore import Cluster, ForeignClient

pytestmark = [pytest.mark.cluster, pytest.mark.exhaustive, pytest.mark.timeout(400)]

MERGES = 40
SIZES = (5, 5_000, 200_000)


def test_a_segment_merged_before_the_store_was_started_again_is_gone(
    cluster: Cluster, foreign_for: Callable[..., ForeignClient]
) -> None:
    """A merged segment is NoSuchSegment, though the store hangs up when an attribute is set.

    The store does so for one or two of the segments merged shortly before. So the test merges many.
    """
    foreign_for(cluster.controller_uri).create("merged", "target", segments=1)
    stream = StreamName(scope="merged", stream="target")
    merged = []
    with closing(connect(StoreAddress(uri=cluster.controller_uri), Settings())) as store:
        for number in range(MERGES):
            part, first, into = (store.staging_name(stream, 0, uuid4().hex) for _ in range(3))
            for name in (part, first, into):
                assert store.create(name)
                assert store.append_at(name, 0, bytes(SIZES[number % len(SIZES)]))
            for source, name in ((part, first), (first, into)):
                store.seal(source)
                store.merge(name, source, CompareAndSet(uuid4(), None, 1))
            merged.append([into, first, part])
        cluster.kill("segmentstore")
        cluster.restart("segmentstore")
    attribute = uuid4()
    with closing(connect(StoreAddress(uri=cluster.controller_uri), Settings())) as store:
        for _, *gone in merged:
            assert store.infos(gone) == [None, None]
            for name in gone:
                with pytest.raises(NoSuchSegment):
                    store.set_attribute(name, CompareAndSet(attribute, None, 1))
        assert clear_names("ab" * 16, merged, store) == MERGES
        assert not any(store.infos([name for names in merged for name in names]))
