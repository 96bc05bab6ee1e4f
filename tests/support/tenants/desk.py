"""A namespace whose driver pods run on this machine, one after the other."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from support.cluster.kubelet import DriverPod

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from s3gateway import Gateway
    from support.tenants.tenant import Tenant


class Desk:
    """A namespace whose driver pods run on this machine, one after the other.

    Args:
        tenant: the namespace.
        folder: directory for the files of pods and for claims.
    """

    def __init__(self, tenant: Tenant, folder: Path) -> None:
        self.tenant = tenant
        self._folder = folder
        self._seen: set[str] = set()

    def resource(self, kind: str, name: str, spec: dict[str, Any]) -> None:
        """Apply a resource."""
        body = {"apiVersion": "sluice.dev/v1alpha1", "kind": kind, "metadata": {"name": name}}
        self.tenant.apply(body | {"spec": spec})

    def bucket(self, gateway: Gateway, name: str) -> str:
        """Make a new bucket, and a StreamStore of it with this name. Return the bucket's name."""
        made = gateway.make_bucket(f"{name}-{uuid4().hex[:8]}")
        keys = {"accessKeyId": gateway.access, "secretAccessKey": gateway.secret}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}}
        self.tenant.apply(secret | {"stringData": keys})
        s3 = {
            "bucket": made,
            "endpoint": gateway.endpoint,
            "credentialsSecretRef": {"name": "keys"},
        }
        self.resource("StreamStore", name, {"s3": s3})
        return made

    def waiting(self, component: str = "driver") -> dict[str, Any]:
        """Wait for a new pending pod of this component's Jobs, and return it."""
        label = f"app.kubernetes.io/component={component}"

        def fresh() -> list[dict[str, Any]]:
            jobs = self.tenant.get_all("jobs", labelSelector=label)
            owners = {one["metadata"]["uid"] for one in jobs}
            return [
                pod
                for pod in self.tenant.get_all("pods")
                if pod["status"].get("phase") == "Pending"
                and "deletionTimestamp" not in pod["metadata"]
                and pod["metadata"]["name"] not in self._seen
                and any(one["uid"] in owners for one in pod["metadata"].get("ownerReferences", ()))
            ]

        pod: dict[str, Any]
        (pod,) = self.tenant.until(f"a pod of a {component}", fresh)
        self._seen.add(pod["metadata"]["name"])
        return pod

    @contextmanager
    def driver(self, component: str = "driver") -> Iterator[DriverPod]:
        """Run the next pod of this component's Jobs, and kill it in the end."""
        pod = self.waiting(component)
        folder = self._folder / pod["metadata"]["name"]
        folder.mkdir()
        driver = DriverPod(self.tenant, pod, folder, self._folder)
        try:
            yield driver
        finally:
            driver.close()

    def drive(self, *, killed: Callable[[], bool] | None = None, code: int = 0) -> None:
        """Run the next driver's pod to its end.

        Args:
            killed: condition on which to kill the driver midway; None to let it end.
            code: the driver's expected exit code, if it is not killed.
        """
        with self.driver() as driver:
            if killed is not None:
                self.tenant.until("the driver's pod is to be killed", killed)
                assert driver.process.poll() is None, "the driver ended before it was killed"
                driver.process.kill()
                driver.finish()
                return
            assert driver.finish() == code

    def until_reason(self, kind: str, name: str, *reasons: str) -> dict[str, Any]:
        """Wait until a resource's Ready condition has one of these reasons. Return the status."""

        def said() -> bool:
            found = self.tenant.get(kind, name) or {}
            conditions = found.get("status", {}).get("conditions", [])
            return any(one["type"] == "Ready" and one["reason"] in reasons for one in conditions)

        self.tenant.until(f"{kind} {name} says {reasons}", said)
        found = self.tenant.get(kind, name)
        assert found is not None
        status: dict[str, Any] = found["status"]
        return status
