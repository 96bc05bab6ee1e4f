"""The numbers of resources in each state, as metrics."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sluice.handlers.states import count
from sluice.kube.api.cache import Mirror
from sluice.kube.api.kinds import (
    EPHEMERAL_STREAM,
    SCOPE_COPY,
    STREAM_ARCHIVE,
    STREAM_COPY,
    STREAM_STORE,
)
from sluice.metrics import Metrics

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Kind, Object

LEAVING = {"deletionTimestamp": "2026-01-02T03:04:05Z"}
RELEASED = {"release": {"completed": "2026-01-02T03:04:05Z"}}


def test_resources_are_counted_by_what_they_say() -> None:
    """Each kind counts by itself, as the watches showed it last, and no state is left out."""
    mirror, metrics = Mirror(), Metrics()
    numbers = iter(range(100))

    def see(kind: Kind, *, gone: bool = False, name: str = "", **conditions: str) -> str:
        name = name or f"n{next(numbers)}"
        found = [{"type": one, "status": status} for one, status in conditions.items()]
        meta = {"namespace": "team", "name": name, "uid": "u"}
        mirror.see(kind, {"metadata": meta, "status": {"conditions": found}}, gone=gone)
        return name

    for kind in (STREAM_COPY, STREAM_COPY, STREAM_ARCHIVE):
        see(kind, Succeeded="True")
    see(STREAM_COPY, Succeeded="False", Stalled="True")
    see(SCOPE_COPY, Suspended="True")
    changed = see(SCOPE_COPY)
    see(SCOPE_COPY, name=changed, Stalled="True")
    see(SCOPE_COPY, gone=True, name=see(SCOPE_COPY))
    see(SCOPE_COPY)
    see(STREAM_STORE, Ready="True")
    see(STREAM_STORE, Ready="False")
    see(EPHEMERAL_STREAM, Ready="True")
    for more in ({"metadata": LEAVING}, {"status": RELEASED}):
        meta: Object = {"namespace": "team", "name": f"n{next(numbers)}"}
        body = {"metadata": meta | more.get("metadata", {}), "status": more.get("status", {})}
        mirror.see(EPHEMERAL_STREAM, body, gone=False)
    count(mirror, metrics)
    text = metrics.text().decode()
    copies = re.findall(r'^sluice_copies{kind="(\w+)",state="(\w+)"} (\d)', text, re.MULTILINE)
    assert {(kind, state): int(found) for kind, state, found in copies if found != "0"} == {
        ("StreamCopy", "Succeeded"): 2,
        ("StreamCopy", "Failed"): 1,
        ("ScopeCopy", "Suspended"): 1,
        ("ScopeCopy", "Failed"): 1,
        ("ScopeCopy", "Active"): 1,
        ("StreamArchive", "Succeeded"): 1,
    }
    assert len(copies) == 12
    streams = re.findall(r'^sluice_ephemeral_streams{state="(\w+)"} (\d)', text, re.MULTILINE)
    there = {state for state, found in streams if found == "1"}
    assert there == {"Ready", "Deleting", "Released"}
    assert len(streams) == 6
    assert 'sluice_stores{ready="true"} 1' in text
    assert 'sluice_stores{ready="false"} 1' in text
