"""The operator in a cluster: from `kubectl apply` to the driver's pod, and to Ready."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from bench.model import Goal, Measurement, Source
from bench.site import new_tenant
from bench.timeline import APPLY, CREATED, READY, is_ready, medians, moments, phases
from bench.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench.site import Site
    from bench.timeline import Object
    from support.cluster.tenant import Tenant

DRIVER_KEY: Final = "apply_to_driver_p50_s"
READY_KEY: Final = "apply_to_ready_1MB_s"
KEYS: Final = (DRIVER_KEY, READY_KEY)
RUNS: Final = 10

_MEGABYTE: Final = Source.of_bytes(1e6, segments=4, size=992)
_PATIENCE: Final = 120.0


def measure_applies(site: Site, say: Callable[[str], None]) -> list[Measurement]:
    """Apply copies one after the other, each to its end, on an operator that has done one before.

    Args:
        site: where.
        say: told what happens.

    Raises:
        BenchError: a copy does not become ready.
    """
    name = f"sluice-bench-{uuid4().hex[:8]}"
    with _tenant(site, name, say) as tenant, Watching(site.cluster, name) as watching:
        found = [_apply(tenant, watching, number, say) for number in range(RUNS + 1)]
    return _measured(found[1:])  # the first one was to get warm


def _measured(runs: Sequence[dict[str, float]]) -> list[Measurement]:
    """The results, from the moments of each run."""
    split = [phases(run) for run in runs]
    begun = [run[CREATED] - run[APPLY] for run in runs]
    whole = [run[READY] - run[APPLY] for run in runs]
    return [
        Measurement(DRIVER_KEY, tuple(begun), Goal("<", 0.5)),
        Measurement(READY_KEY, tuple(whole), Goal("<", 15), medians(split)),
    ]


def _apply(
    tenant: Tenant, watching: Watching, number: int, say: Callable[[str], None]
) -> dict[str, float]:
    """Apply a copy, wait until it is ready, and look where its driver's seconds went."""
    name = f"copy-{number}"
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
    what = f"{number} of {RUNS}" if number else "warm-up"
    say(
        f"{what}: driver's pod after {found[CREATED] - begin:.2f} s, "
        f"Ready after {found[READY] - begin:.2f} s"
    )
    return found


@contextmanager
def _tenant(site: Site, name: str, say: Callable[[str], None]) -> Iterator[Tenant]:
    """A namespace and a scope of that name with a source in it; both go, with all in them."""
    with new_tenant(site, name, say) as tenant:
        java = site.java
        java.create_scope(name)
        java.create(name, "source", segments=_MEGABYTE.segments)
        java.write(name, "source", events=_MEGABYTE.events, size=_MEGABYTE.size, keys=100)
        say(f"wrote {_MEGABYTE}")
        try:
            yield tenant
        finally:
            say("removing copies and streams")
            tenant.run("delete", "scopy", "--all", "--timeout=100s", timeout=110)
            for stream in ("source", *(f"copy-{number}" for number in range(RUNS + 1))):
                java.create(name, stream)  # if a copy never came to make it
                java.seal(name, stream)
                java.delete(name, stream)
            java.delete_scope(name)
