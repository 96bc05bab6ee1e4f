"""EphemeralStreams on a real cluster: their owners, their conditions, and their changes."""

from __future__ import annotations

import json
import subprocess
from typing import IO, TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from support.tenants.tenant import Object, Tenant


def workload(tenant: Tenant, name: str) -> Object:
    """Make a workload without pods, and return it as spec.owners names it."""
    tenant.run("create", "deployment", name, "--image=localhost/none:1", "--replicas=0")
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


def ephemeral(tenant: Tenant, name: str, scope: str, *owners: Object, **spec: Any) -> Object:
    """Return an EphemeralStream of a stream of its own name, unless the spec has a prefix."""
    what = {} if "streamPrefix" in spec else {"stream": spec.pop("stream", name)}
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "EphemeralStream",
        "metadata": {"name": name, "namespace": tenant.namespace},
        "spec": {"storeRef": {"name": "store"}, "scope": scope, **what, "owners": [*owners]} | spec,
    }


def until_reason(tenant: Tenant, name: str, *reasons: str) -> Object:
    """Wait until an EphemeralStream's Ready condition has one of these reasons, and return it."""

    def said() -> Object:
        found = tenant.condition(name, resource="eps")
        return found if found.get("reason") in reasons else {}

    return tenant.until(f"{name} says {' or '.join(reasons)}", said)


class Watch:
    """A watch that records every change of one EphemeralStream, from its start on.

    Args:
        tenant: the namespace.
        name: the EphemeralStream's name.
        log: an open file for the changes, which the watch reads again.
    """

    def __init__(self, tenant: Tenant, name: str, log: IO[str]) -> None:
        words = ("get", "eps", name, "--watch", "--output-watch-events", "--output=json")
        self._command = tenant.cluster.kubectl_command(f"--namespace={tenant.namespace}", *words)
        self._log = log
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start the watch."""
        self._child = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.DEVNULL
        )
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the watch."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def events(self) -> list[tuple[str, Object]]:
        """Return the changes in order: ADDED, MODIFIED or DELETED, and the object."""
        assert self._child is not None
        assert self._child.poll() is None, "the watch has ended"
        self._log.seek(0)
        text, at, found = self._log.read(), 0, []
        decoder = json.JSONDecoder()
        while rest := text[at:].lstrip():
            try:
                event, length = decoder.raw_decode(rest)
            except json.JSONDecodeError:
                break  # the event is being written
            found.append((event["type"], event["object"]))
            at = len(text) - len(rest) + length
        return found


def ready_of(resource: Object) -> Object:
    """Return a resource's Ready condition; an empty one if it has none."""
    conditions = resource.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == "Ready"), {})
