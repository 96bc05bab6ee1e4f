"""The time from `kubectl apply` to Ready for a scope of 500 small streams.

For comparison, the Java client makes and fills as many streams, many at a time.
"""

from __future__ import annotations

import time
from statistics import fmean, median
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from bench.cluster.site import new_tenant
from bench.cluster.timeline import APPLY, READY, is_ready, medians, moments, phases
from bench.cluster.watching import Watching
from bench.model import Goal, Measurement
from bench.scopes import AT_ONCE, SMALL
from support.store.scopes import fill

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.cluster.site import Site
    from bench.cluster.timeline import Object
    from localstore import ForeignClient
    from support.tenants.tenant import Tenant

KEY: Final = "small_streams_s"
JAVA_KEY: Final = "small_streams_vs_java"
KEYS: Final = (KEY, JAVA_KEY)
RUNS: Final = 3

_PATIENCE: Final = 600.0
_EVENTS: Final = round(fmean(sketch.events for sketch in SMALL))
_SIZE: Final = SMALL[0].size


def measure_small_streams(site: Site, say: Callable[[str], None]) -> list[Measurement]:
    """Apply copies of the scope one after the other, each into another scope.

    After each copy, the Java client makes and fills streams of its own.

    Args:
        site: the cluster to measure in.
        say: callback for progress messages.

    Raises:
        BenchError: a copy does not become ready.
    """
    name = f"sluice-bench-{uuid4().hex[:8]}"
    targets = [f"{name}-{number}" for number in range(RUNS + 1)]
    others = [f"{target}-java" for target in targets]
    with new_tenant(site, name, say) as tenant, Watching(site.cluster, name) as watching:
        begun = time.monotonic()
        fill(site.java, name, SMALL)
        say(f"wrote {len(SMALL)} streams in {time.monotonic() - begun:.1f} s")
        try:
            found = []
            for target, other in zip(targets, others, strict=True):
                ours = _apply(tenant, watching, target, say)
                found.append((ours, _fill(site.java, other, say)))
        finally:
            say("removing copies and streams")
            tenant.run("delete", "sccp", "--all", "--timeout=100s", timeout=110)
            for scope in (name, *targets, *others):
                _remove(site.java, scope)
    runs, seconds = zip(*found[1:], strict=True)  # the first runs were the warm-up
    split = medians([phases(run) for run in runs])
    ready = tuple(run[READY] - run[APPLY] for run in runs)
    counts = {"the Java client, seconds": median(seconds)}
    return [
        Measurement(KEY, ready, Goal("<", 120), split),
        Measurement(JAVA_KEY, ready, Goal("<=", 2.5), unit="", counts=counts, base=seconds),
    ]


def _fill(java: ForeignClient, scope: str, say: Callable[[str], None]) -> float:
    """Return the seconds in which the Java client makes and fills as many streams."""
    seconds = max(
        java.fill_many(scope, "small-", len(SMALL), threads=AT_ONCE, events=_EVENTS, size=_SIZE)
    )
    say(f"the Java client made and filled {len(SMALL)} streams in {seconds:.1f} s")
    return seconds


def _remove(java: ForeignClient, scope: str) -> None:
    """Delete a scope and its streams, side by side, if a copy has made it."""
    names = java.streams(scope)
    if names is not None:
        deeds = [[("delete", {"scope": scope, "stream": name})] for name in names]
        java.together(deeds, threads=AT_ONCE, seconds=_PATIENCE)
        java.delete_scope(scope)


def _apply(
    tenant: Tenant, watching: Watching, target: str, say: Callable[[str], None]
) -> dict[str, float]:
    """Apply a copy, wait until it is ready, and return its moments."""
    name = target.removeprefix(f"{tenant.namespace}-")
    body = tenant.scope_resource(
        f"copy-{name}", tenant.namespace, target, scope_policy="CreateIfAbsent"
    )
    begin = time.time()
    tenant.apply(body)

    def ready(seen: Object) -> bool:
        mine = (seen["kind"], seen["metadata"]["name"]) == ("ScopeCopy", f"copy-{name}")
        return mine and is_ready(seen)

    watching.until(f"copy-{name} is ready", ready, seconds=_PATIENCE)
    uid = tenant.run("get", "sccp", f"copy-{name}", "--output=jsonpath={.metadata.uid}")
    selector = f"sluice.dev/copy-uid={uid},app.kubernetes.io/component=driver"
    log = tenant.run("logs", f"--selector={selector}", "--tail=-1")
    found = {APPLY: begin} | moments(f"copy-{name}", watching.seen, log, kind="ScopeCopy")
    say(f"{name} of {RUNS}: Ready after {found[READY] - begin:.1f} s")
    return found
