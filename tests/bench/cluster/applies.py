"""The time from `kubectl apply` to the driver's pod and to Ready, in a cluster."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from bench.cluster.site import new_tenant
from bench.cluster.timeline import APPLY, CREATED, READY, is_ready, medians, moments, phases
from bench.cluster.watching import Watching
from bench.model import Goal, Measurement, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench.cluster.site import Site
    from bench.cluster.timeline import Object
    from support.tenants.tenant import Tenant

DRIVER_KEY: Final = "apply_to_driver_p50_s"
READY_KEY: Final = "apply_to_ready_1MB_s"
KEYS: Final = (DRIVER_KEY, READY_KEY)
RUNS: Final = 10

LARGE_KEYS: Final = ("apply_to_ready_108MB_s",)
LARGE_RUNS: Final = 3
"""Few runs, because the heap of the store in the cluster is small."""

_MEGABYTE: Final = Source.of_bytes(1e6, segments=4, size=992)
_LARGE: Final = Source(events=1_000_000, size=100, segments=4)
_PATIENCE: Final = 120.0
_WRITE_SECONDS: Final = 300.0


def measure_applies(site: Site, say: Callable[[str], None]) -> list[Measurement]:
    """Apply copies of a megabyte.

    Args:
        site: the cluster to measure in.
        say: callback for progress messages.

    Raises:
        BenchError: a copy does not become ready.
    """
    runs = _apply_all(site, _MEGABYTE, RUNS, say)
    begun = [run[CREATED] - run[APPLY] for run in runs]
    return [Measurement(DRIVER_KEY, tuple(begun), Goal("<", 0.5)), _ready(READY_KEY, runs, 2)]


def measure_large(site: Site, say: Callable[[str], None]) -> list[Measurement]:
    """Apply copies whose drivers need Spark; see `measure_applies`."""
    runs = _apply_all(site, _LARGE, LARGE_RUNS, say)
    return [_ready(key, runs, 5) for key in LARGE_KEYS]


def _ready(key: str, runs: Sequence[dict[str, float]], most: float) -> Measurement:
    """Return the seconds to Ready and their phases, from the moments of each run."""
    whole = tuple(run[READY] - run[APPLY] for run in runs)
    return Measurement(key, whole, Goal("<", most), medians([phases(run) for run in runs]))


def _apply_all(
    site: Site, source: Source, runs: int, say: Callable[[str], None]
) -> list[dict[str, float]]:
    """Apply copies one after the other, each to its end. A first copy warms up the operator.

    Returns:
        The moments of each copy, without the first.
    """
    name = f"sluice-bench-{uuid4().hex[:8]}"
    targets = [f"copy-{number}" for number in range(runs + 1)]
    with (
        _tenant(site, name, source, targets, say) as tenant,
        Watching(site.cluster, name) as watching,
    ):
        found = [_apply(tenant, watching, target, say) for target in targets]
    return found[1:]  # the first copy was the warm-up


def _apply(
    tenant: Tenant, watching: Watching, name: str, say: Callable[[str], None]
) -> dict[str, float]:
    """Apply a copy, wait until it is ready, and return its moments."""
    body = tenant.copy_resource(name, f"{tenant.namespace}/source", f"{tenant.namespace}/{name}")
    begin = time.time()
    tenant.apply(body)

    def ready(seen: Object) -> bool:
        mine = (seen["kind"], seen["metadata"]["name"]) == ("StreamCopy", name)
        return mine and is_ready(seen)

    watching.until(f"{name} is ready", ready, seconds=_PATIENCE)
    uid = tenant.run("get", "scopy", name, "--output=jsonpath={.metadata.uid}")
    selector = f"sluice.dev/copy-uid={uid},app.kubernetes.io/component=driver"
    log = tenant.run("logs", f"--selector={selector}", "--tail=-1")
    found = {APPLY: begin} | moments(name, watching.seen, log)
    say(
        f"{name}: driver's pod after {found[CREATED] - begin:.2f} s, "
        f"Ready after {found[READY] - begin:.2f} s"
    )
    return found


@contextmanager
def _tenant(
    site: Site, name: str, source: Source, targets: Sequence[str], say: Callable[[str], None]
) -> Iterator[Tenant]:
    """Yield a namespace and a scope of this name, with a source. Delete both with their content."""
    with new_tenant(site, name, say) as tenant:
        java = site.java
        java.create_scope(name)
        java.create(name, "source", segments=source.segments)
        java.write(
            name,
            "source",
            events=source.events,
            size=source.size,
            keys=100,
            seconds=_WRITE_SECONDS,
        )
        say(f"wrote {source}")
        try:
            yield tenant
        finally:
            say("removing copies and streams")
            tenant.run("delete", "scopy", "--all", "--timeout=100s", timeout=110)
            for stream in ("source", *targets):
                java.create(name, stream)  # a copy may have failed before it made the stream
                java.seal(name, stream)
                java.delete(name, stream)
            java.delete_scope(name)
