"""A copy with hooks and its adversary: see `support.simulation.copy_machine`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import rule

from sluice.kube.api.kinds import CRON_JOB, JOB
from sluice.kube.jobs.hooks import CONSENT, is_hook
from support.cases import resources
from support.simulation.copy_cluster import Cluster
from support.simulation.copy_machine import CopyMachine
from support.simulation.copy_objects import CopyObjects, has_ended

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from sluice.kube.api.kinds import Object

HOOKS: Final[Object] = {
    "before": {"cronJobRef": {"name": "quiesce"}, "timeoutSeconds": 60},
    "after": {"cronJobRef": {"name": "switch"}, "timeoutSeconds": 60},
}
FATES: Final = ("start", *("succeed",) * 5, "fail", "delete", "no template", "no consent")


class HookedCluster(Cluster):
    """A cluster with a copy that has two hooks, and with their CronJobs.

    Attributes:
        made: the UIDs of each hook's Jobs, by name.
        removed: how often each hook's Job was deleted, by name.
        succeeded: how often a hook has succeeded, by its name in the spec.
    """

    resource: Object = resources.changed(CopyObjects.resource, "spec.hooks", HOOKS)

    def __init__(self, **spec: Any) -> None:
        self.made: dict[str, set[str]] = {}
        self.removed: Counter[str] = Counter()
        self.succeeded: Counter[str] = Counter()
        super().__init__(**spec)
        self.put_templates()

    def put_templates(self, *, consent: bool = True) -> None:
        """Put the CronJobs, as their author does."""
        notes = {CONSENT: "true"} if consent else {}
        template = {"metadata": {}, "spec": {"template": {"spec": {"containers": []}}}}
        for hook in HOOKS.values():
            meta = {"name": hook["cronJobRef"]["name"], "annotations": notes}
            self.server.put(CRON_JOB, {"metadata": meta, "spec": {"jobTemplate": template}})

    @property
    def hook_jobs(self) -> list[Object]:
        """The Jobs of hooks that have not ended."""
        return [job for job in self.server.all(JOB) if is_hook(job) and not has_ended(job)]

    def _controllers(self) -> None:
        super()._controllers()
        there = {job["metadata"]["name"]: job for job in self.server.all(JOB) if is_hook(job)}
        for name, job in there.items():
            self.made.setdefault(name, set()).add(job["metadata"]["uid"])
        for name in self.made.keys() - there.keys():
            self.removed[name] = len(self.made[name])

    def happen(self, which: int, fate: str) -> None:
        """Change a hook's Job or the CronJobs."""
        if fate == "no template":
            for hook in HOOKS.values():
                self.server.remove(CRON_JOB, hook["cronJobRef"]["name"])
        elif fate == "no consent":
            self.put_templates(consent=False)
        elif jobs := self.hook_jobs:
            self._end(jobs[which % len(jobs)], fate)

    def _end(self, job: Object, fate: str) -> None:
        name = job["metadata"]["name"]
        ended = {"status": "True", "lastTransitionTime": self.now.isoformat(), "reason": "R"}
        match fate:
            case "start":
                self.server.edit(JOB, name, status={"active": 1})
            case "succeed":
                self.succeeded["before" if "-before-" in name else "after"] += 1
                self.server.edit(JOB, name, status={"conditions": [ended | {"type": "Complete"}]})
            case "fail":
                self.server.edit(JOB, name, status={"conditions": [ended | {"type": "Failed"}]})
            case _:
                self.server.remove(JOB, name)

    def can_start(self) -> None:
        """Make all images available, and let hooks succeed."""
        super().can_start()
        self.put_templates()
        for job in self.hook_jobs:
            self._end(job, "succeed")


class HookedMachine(CopyMachine):
    """One copy with hooks, its cluster, and one operator or two."""

    cluster: HookedCluster
    make = HookedCluster
    wishes = 4

    @rule(which=st.integers(0, 1), fate=st.sampled_from(FATES))
    def hook(self, which: int, fate: str) -> None:
        """Let a hook's Job run, end or vanish, or its CronJob be missing or not meant for it."""
        self.cluster.happen(which, fate)

    def others(self, random: Random) -> dict[str, tuple[int, Callable[[], None]]]:
        """Return the moves of hooks."""
        return {"hook": (6, lambda: self.hook(random.randrange(2), random.choice(FATES)))}

    def the_world_is_in_order(self) -> None:
        """Check all promises, after any event."""
        super().the_world_is_in_order()
        cluster = self.cluster
        for name, uids in cluster.made.items():
            assert len(uids) <= 1 + cluster.removed[name], "a hook's Job is made once"
        if self.alone:
            assert len(cluster.hook_jobs) <= 1, "one hook at a time"
            if any(one.running for one in cluster.drivers):
                assert cluster.succeeded["before"], "no byte is copied before the hook"
            if self.said_to_be_done():
                assert cluster.succeeded["after"], "a copy is ready after its hook"
