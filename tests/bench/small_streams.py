"""A scope of 500 small streams, copied by the operator: from `kubectl apply` to Ready."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from bench.model import Goal, Measurement
from bench.scopes import AT_ONCE, SMALL
from bench.site import new_tenant
from bench.timeline import APPLY, READY, is_ready, medians, moments, phases
from bench.watching import Watching
from support.store.scopes import fill

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.site import Site
    from bench.timeline import Object
    from localstore import ForeignClient
    from support.cluster.tenant import Tenant

KEY: Final = "small_streams_s"
RUNS: Final = 3

_PATIENCE: Final = 600.0


def measure_small_streams(site: Site, say: Callable[[str], None]) -> list[Measurement]:
    """Apply copies of the scope one after the other, each to its end and into another scope.

    Args:
        site: where.
        say: told what happens.

    Raises:
        BenchError: a copy does not become ready.
    """
    name = f"sluice-bench-{uuid4().hex[:8]}"
    scopes = [name, *(f"{name}-{number}" for number in range(RUNS + 1))]
    with new_tenant(site, name, say) as tenant, Watching(site.cluster, name) as watching:
        begun = time.monotonic()
        fill(site.java, name, SMALL)
        say(f"wrote {len(SMALL)} streams in {time.monotonic() - begun:.1f} s")
        try:
            found = [_apply(tenant, watching, scope, say) for scope in scopes[1:]][1:]
        finally:
            say("removing copies and streams")
            tenant.run("delete", "sccp", "--all", "--timeout=100s", timeout=110)
            for scope in scopes:
                _remove(site.java, scope)
    split = medians([phases(run) for run in found])
    seconds = tuple(run[READY] - run[APPLY] for run in found)
    return [Measurement(KEY, seconds, Goal("<", 120), split)]  # the first one was to get warm


def _remove(java: ForeignClient, scope: str) -> None:
    """Delete a scope's streams side by side, and the scope, if a copy came to make it."""
    names = java.streams(scope)
    if names is not None:
        deeds = [[("delete", {"scope": scope, "stream": name})] for name in names]
        java.together(deeds, threads=AT_ONCE, seconds=_PATIENCE)
        java.delete_scope(scope)


def _apply(
    tenant: Tenant, watching: Watching, target: str, say: Callable[[str], None]
) -> dict[str, float]:
    """Apply a copy, wait until it is ready, and look where its driver's seconds went."""
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
