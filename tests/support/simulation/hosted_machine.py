"""A copy whose drivers run in the namespace of its StreamStores, and its adversary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from hypothesis import strategies as st
from hypothesis.stateful import rule

from sluice.core.workloads.answers import Planned
from sluice.kube.api.kinds import CONFIG_MAP, JOB, NAMESPACE, POD, SECRET, STREAM_STORE
from sluice.kube.api.names import ATTEMPT_LABEL
from support.cases import resources
from support.simulation.copy_cluster import Cluster
from support.simulation.copy_machine import CopyMachine
from support.simulation.copy_store import FROM, TO

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from sluice.core.workloads.answers import Answer
    from sluice.kube.api.kinds import Object

PLATFORM: Final = "platform"
LOGIN: Final = "login"
FORGED: Final = "forged"
NUMBERS: Final = ("1", "2", "999999999", "9999999999", "")
LABEL: Final = "kubernetes.io/metadata.name"
GRANT: Final[Object] = {"selector": {"matchLabels": {LABEL: "default"}}, "driverNamespace": "Store"}


def _store(name: str, uri: str) -> Object:
    """Return a StreamStore of the platform's, which has a login and is shared."""
    auth = {"basic": {"secretRef": {"name": LOGIN}}}
    spec = {"pravega": {"controllerURI": uri, "auth": auth}, "access": {"sharedWith": [GRANT]}}
    return {"name": name, "spec": spec}


class HostedCluster(Cluster):
    """A cluster in which the StreamStores of a copy are in another namespace, with their login."""

    space = PLATFORM
    resource: Object = resources.changed(
        resources.changed(
            resources.COPY, "spec.source.storeRef", {"name": "from", "namespace": PLATFORM}
        ),
        "spec.target.storeRef",
        {"name": "local", "namespace": PLATFORM},
    )
    sources: tuple[Object, ...] = (_store("from", FROM.uri),)
    target: ClassVar[Object] = _store("local", TO.uri)

    def __init__(self, **spec: Any) -> None:
        super().__init__(**spec)
        for name in ("default", PLATFORM):
            self.server.objects[NAMESPACE.name, None, name] = {
                "metadata": {"name": name, "uid": name, "labels": {LABEL: name}}
            }
        self.server.put(SECRET, {"metadata": {"name": LOGIN, "namespace": PLATFORM}})

    def share(self, *, on: bool) -> None:
        """Give or withdraw the grants, as the platform team does."""
        for body in self.server.all(STREAM_STORE):
            access = {"sharedWith": [GRANT] if on else []}
            meta = {"generation": body["metadata"]["generation"] + 1}
            spec = body["spec"] | {"access": access}
            name = body["metadata"]["name"]
            self.server.edit(STREAM_STORE, name, PLATFORM, spec=spec, metadata=meta)

    def forge(self, number: str) -> None:
        """Make a Job that looks like an attempt, in the copy's namespace."""
        meta = self.child.metadata(FORGED, "driver", **{ATTEMPT_LABEL: number})
        body = {"metadata": meta, "spec": {"suspend": True}, "status": {}}
        body["metadata"]["creationTimestamp"] = self.now.isoformat()
        self.server.put(JOB, body)

    def ask(self, known: Any, *, again: bool) -> Answer:
        """See `engine.copy.query.ask`: the plan gets the addresses of the StreamStores."""
        answer = super().ask(known, again=again)
        if not isinstance(answer, Planned):
            return answer
        sources = tuple(one.model_copy(update={"secret": LOGIN}) for one in answer.plan.sources)
        target = answer.plan.target.model_copy(update={"secret": LOGIN})
        plan = answer.plan.model_copy(update={"sources": sources, "target": target})
        return Planned(plan=plan, recorded=answer.recorded)


class HostedMachine(CopyMachine):
    """A copy whose drivers run in the StreamStores' namespace, with its adversary."""

    make: Callable[[], Cluster] = HostedCluster
    cluster: HostedCluster

    def the_world_is_in_order(self) -> None:
        """Check the promises of any copy, and those about both namespaces."""
        super().the_world_is_in_order()
        self.drivers_are_with_the_login()
        self.nothing_is_left_with_the_platform()

    def drivers_are_with_the_login(self) -> None:
        """Check that no driver, and nothing that it mounts, is where the copy's users may look."""
        server = self.cluster.server
        jobs = [one["metadata"] for one in server.all(JOB) if one["metadata"]["name"] != FORGED]
        assert {meta["namespace"] for meta in jobs} <= {PLATFORM}
        assert {body["metadata"]["namespace"] for body in server.all(POD)} <= {PLATFORM}
        assert not any("default" in key and key[0] == SECRET.name for key in server.objects)

    def nothing_is_left_with_the_platform(self) -> None:
        """Check that a copy without the finalizer has no object in the other namespace."""
        server = self.cluster.server
        if self.alone and not self.cluster.finalizer:
            left = [*server.all(JOB), *server.all(CONFIG_MAP)]
            assert not [one for one in left if one["metadata"]["namespace"] == PLATFORM]
        jobs = {body["metadata"]["uid"] for body in server.all(JOB)}
        for body in server.all(CONFIG_MAP):
            if body["metadata"]["namespace"] == PLATFORM:
                (owner,) = body["metadata"]["ownerReferences"]
                assert owner["uid"] in jobs, "a quota of Jobs bounds all that is there"

    @rule(number=st.sampled_from(NUMBERS))
    def forge(self, number: str) -> None:
        """Make a Job that looks like an attempt beside the copy, as the copy's users can."""
        if self.cluster.copy is not None:
            self.cluster.forge(number)

    @rule(on=st.booleans())
    def share(self, *, on: bool) -> None:
        """Give or withdraw the grants."""
        self.cluster.share(on=on)

    def others(self, random: Random) -> dict[str, tuple[int, Callable[[], None]]]:
        """See CopyMachine."""
        return {
            "share": (1, lambda: self.share(on=random.random() < 0.7)),
            "forge": (1, lambda: self.forge(random.choice(NUMBERS))),
        }

    def mend(self) -> None:
        """Repair all damage, and give the grants."""
        super().mend()
        self.cluster.share(on=True)
        self.cluster.server.remove(JOB, FORGED)
