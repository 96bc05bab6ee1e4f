"""The Jobs of copies that follow their sources, as Kubernetes' Job controller treats them.

The controller replaces the pods of a follower six times at most. It ends the Job at once if the
data or the spec cause the failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sluice.errors import EXIT_CODES, Category
from sluice.kube.api.kinds import JOB, POD
from support.simulation.copy_cluster import Cluster
from support.simulation.copy_promises import CopyPromises

if TYPE_CHECKING:
    from sluice.kube.api.kinds import Object
    from support.simulation.copy_cluster import Driver

MOST_PODS: Final = 7
CUTOVERS: Final = ("None", "Drain", "SealAndDrain")


class FollowedPromises(CopyPromises):
    """The promises that differ for a copy that follows its source."""

    def conditions_do_not_contradict(self) -> None:
        """Check that kstatus understands the status: it sees no end before success."""
        said = {found.type: found for found in self.status.conditions}
        if not said:
            assert self.status.observed_generation == -1 or self.cluster.deleted
            return
        assert not {"Reconciling", "Stalled"} <= said.keys()
        ready = said["Ready"]
        assert (ready.status == "False") == ("Stalled" in said)
        if ready.status == "True":
            assert ("Succeeded" in said) == (ready.reason != "Following")
            assert not {"Reconciling", "Stalled", "Suspended"} & said.keys()
        else:
            assert "Succeeded" not in said
            assert len({"Reconciling", "Stalled", "Suspended"} & said.keys()) == 1
        assert all(found.message for found in said.values())


class FollowerJobs(Cluster):
    """A cluster with Jobs of both kinds."""

    def __init__(self, **spec: Any) -> None:
        super().__init__(mode="Continuous", **spec)
        self._pods: dict[str, int] = {}

    def _run_job(self, job: Object, pods: list[Object]) -> bool:
        """Make or replace a Job's pod, or end the Job, as the Job controller does."""
        uid = job["metadata"]["uid"]
        if "podFailurePolicy" not in job["spec"]:
            return super()._run_job(job, pods)
        phases = {pod["status"]["phase"] for pod in pods}
        if phases - {"Succeeded", "Failed"}:
            return False
        made = self._pods.get(uid, 0)
        if "Succeeded" in phases or any(map(_is_final, pods)) or made >= MOST_PODS:
            self._end_job(job, "Complete" if "Succeeded" in phases else "Failed")
            return True
        self._pods[uid] = made + 1
        self._given.add(f"{uid}/{made}")
        self._make_pod(job)
        return True

    def follows(self, driver: Driver) -> bool:
        """Tell whether a driver's pod is that of a follower."""
        pod = self.server.body(POD, driver.pod, self.space)
        owner = pod["metadata"]["ownerReferences"][0]["name"] if pod is not None else ""
        job = self.server.body(JOB, owner, self.space)
        return job is not None and "podFailurePolicy" in job["spec"]


def _is_final(pod: Object) -> bool:
    """Tell whether the end of a pod also ends its Job."""
    codes = {EXIT_CODES[Category.SPEC], EXIT_CODES[Category.INTEGRITY]}
    return any(
        (one["state"].get("terminated") or {}).get("exitCode") in codes
        for one in pod["status"].get("containerStatuses") or ()
    )
