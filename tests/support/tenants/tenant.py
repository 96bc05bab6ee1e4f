"""A namespace with copies in its owner's view: through kubectl, and by looks at the store."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

import segment_hash
from localcluster import LocalClusterError
from sluice.core.values import identity
from sluice.core.values.model import StreamName
from sluice.engine.journal.record_log import GENERATIONS
from sluice.engine.scope.log import BESIDE
from sluice.stores.pravega import names
from support.kube.objects import objects_in
from support.until import NeverHappenedError, until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from localcluster import Cluster
    from localcluster.store import ClusterStore
    from localstore import User
    from sluice.core.workloads.plan import Plan
    from support.kube.objects import Objects

Object = dict[str, Any]
T = TypeVar("T")


SOURCE_EVENTS = 250_000
"""Events of the stream that tests of the operator copy to disturb it midway: 25 MB."""
SMALL_EVENTS = 40_000
"""Events of the stream that other tests copy: 4 MB."""
SLOW = {"bytesPerSecond": "2Mi"}
"""Limits with which a copy of the larger stream takes 12 s, so that tests can disturb it midway."""

_DRIVEN = "scopecopies,streamarchives,streamcopies"
_KINDS = f"{_DRIVEN},streamstores,jobs,pods,configmaps,secrets,serviceaccounts"
OURS = f"ephemeralstreams,{_DRIVEN},streamstores"
"""Kinds of Sluice\'s own resources, as kubectl takes them."""
_PARTS = 4
_SEGMENTS = 64


@dataclass(frozen=True)
class Tenant:
    """One namespace.

    Attributes:
        cluster: the cluster.
        namespace: the namespace.
        pravega: the Pravega that its StreamStore names; None if no test of it needs one.
        say: callback that writes a line into the test's log.
        copies: the kind of its copies, as kubectl takes it.
    """

    cluster: Cluster
    namespace: str
    pravega: ClusterStore | None
    say: Callable[[str], None] = field(repr=False)
    copies: str = "scopy"

    @property
    def of_scopes(self) -> Tenant:
        """The same namespace, with ScopeCopies as its copies."""
        return replace(self, copies="sccp")

    @property
    def store(self) -> ClusterStore:
        """The Pravega that its StreamStore names."""
        assert self.pravega is not None, f"{self.namespace} has no Pravega"
        return self.pravega

    # -- kubectl

    def run(self, *words: str, stdin: str | None = None, timeout: float = 300) -> str:
        """Run kubectl, and return its output."""
        return self.cluster.kubectl(
            f"--namespace={self.namespace}", *words, stdin=stdin, timeout=timeout
        )

    def apply(self, *resources: Object) -> None:
        """Apply resources."""
        self.run("apply", "--filename=-", stdin=yaml.safe_dump_all(resources))

    def get(self, kind: str, name: str) -> Object | None:
        """Return an object as kubectl prints it; None if it does not exist."""
        return self._objects.get(self.namespace, kind, name)

    def get_all(self, kinds: str, **selectors: str) -> list[Object]:
        """Return the objects of some kinds; see `Objects.list`."""
        return self._objects.list(self.namespace, kinds, **selectors)

    @property
    def _objects(self) -> Objects:
        return objects_in(self.cluster)

    def patch(self, kind: str, name: str, change: Object) -> None:
        """Change an object by a merge patch."""
        self.run("patch", kind, name, "--type=merge", f"--patch={json.dumps(change)}")

    def annotate(self, name: str, annotation: str) -> None:
        """Annotate a copy."""
        self.run("annotate", self.copies, name, annotation, "--overwrite")

    def objects(self) -> set[str]:
        """Return the namespace's objects as kind/name, without those of Kubernetes itself."""
        return {
            f"{item['kind']}/{item['metadata']['name']}"
            for item in self.get_all(_KINDS)
            if item["metadata"]["name"] not in {"kube-root-ca.crt", "default"}
        }

    # -- resources

    def store_resource(self, name: str = "store", *, uri: str = "", secret: str = "") -> Object:
        """Return a StreamStore."""
        pravega: Object = {"controllerURI": uri or self.store.uri}
        if secret:
            pravega["auth"] = {"basic": {"secretRef": {"name": secret}}}
        return _resource("StreamStore", name, {"pravega": pravega})

    def login_resource(self, user: User, name: str = "login") -> Object:
        """Return the Secret of a StreamStore that logs in."""
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name},
            "stringData": {"username": user.name, "password": user.password},
        }

    def copy_resource(self, name: str, source: str, target: str, **spec: Any) -> Object:
        """Return a StreamCopy within the store, from `scope/stream` to `scope/stream`."""
        sides = {}
        for side, stream in (("source", source), ("target", target)):
            scope, _, short = stream.partition("/")
            sides[side] = {"storeRef": {"name": "store"}, "scope": scope, "stream": short}
        return _resource("StreamCopy", name, sides | spec)

    def scope_resource(
        self, name: str, source: str, target: str, *, scope_policy: str = "MustExist", **spec: Any
    ) -> Object:
        """Return a ScopeCopy within the store, from scope to scope."""
        sides: Object = {
            side: {"storeRef": {"name": "store"}, "scope": scope}
            for side, scope in (("source", source), ("target", target))
        }
        sides["target"]["scopePolicy"] = scope_policy
        return _resource("ScopeCopy", name, sides | spec)

    # -- a copy

    def status(self, name: str) -> Object:
        """Return a copy's status."""
        found = self.get(self.copies, name)
        status: Object = (found or {}).get("status", {})
        return status

    def condition(self, name: str, kind: str = "Ready", resource: str = "") -> Object:
        """Return a condition of a copy or another resource; an empty one if it has none."""
        found = self.get(resource or self.copies, name) or {}
        conditions = found.get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), {})

    def reason(self, name: str) -> str:
        """Return the reason of a copy's Ready condition."""
        return str(self.condition(name).get("reason", ""))

    def percent(self, name: str) -> int:
        """Return the staged part of a copy's bytes, in percent."""
        return int(self.status(name).get("progress", {}).get("percent", 0))

    def until(self, what: str, check: Callable[[], T], *, about: str = "") -> T:
        """Wait until a check returns a true value, and return that value."""
        try:
            return until(what, check)
        except NeverHappenedError as error:
            with suppress(LocalClusterError):
                kinds = self.copies if about else f"{self.copies},eps"
                error.add_note(self.run("describe", kinds, *filter(None, [about])))
                error.add_note(self.run("get", "pods,jobs", "--output=wide"))
            raise

    def until_ready(self, name: str) -> Object:
        """Wait until a copy is done, and return its status."""
        self.until(
            f"{name} is ready",
            lambda: self.condition(name).get("status") == "True",
            about=name,
        )
        return self.status(name)

    def until_tidied(self, name: str) -> None:
        """Wait until a complete copy has deleted its remains in the stores: no finalizer holds it.

        The copy is Ready earlier, as soon as the target is whole. Its driver's pod may still run
        then.
        """
        self.until(
            f"{name} is tidied",
            lambda: "finalizers" not in (self.get(self.copies, name) or {})["metadata"],
            about=name,
        )

    def until_reason(self, name: str, *reasons: str) -> Object:
        """Wait until a copy's Ready condition has one of these reasons, and return it."""
        self.until(
            f"{name} says {' or '.join(reasons)}",
            lambda: self.reason(name) in reasons,
            about=name,
        )
        return self.condition(name)

    def until_staged(self, name: str, *, least: int = 10) -> int:
        """Wait until a part of a copy's bytes is staged, not all. Log and return the percentage."""
        percent = self.until(
            f"{least} % of {name} are staged",
            lambda: p if (p := self.percent(name)) >= least else 0,
            about=name,
        )
        self.say(f"  {name}: {percent} % staged")
        assert least <= percent <= 90, f"{percent} % are staged: too late to disturb"
        return percent

    def until_gone(self, kind: str, name: str) -> None:
        """Wait until an object is gone."""
        self.until(f"{kind}/{name} is gone", lambda: self.get(kind, name) is None)

    def pods(self, component: str = "driver") -> list[Object]:
        """Return the running pods of copies."""
        selector = f"app.kubernetes.io/component={component}"
        return [
            pod
            for pod in self.get_all("pods", labelSelector=selector)
            if pod["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
        ]

    def events(self, name: str) -> list[tuple[str, str]]:
        """Return the events about a copy or a store, as (reason, message)."""
        found = self.get_all("events", fieldSelector=f"involvedObject.name={name}")
        return [(event["reason"], event["message"]) for event in found]

    # -- the store

    def hashes(self, stream: str, *, segments: int) -> list[Object]:
        """Return the stand-alone script's report on each segment of a stream, ordered by id."""
        scope, _, short = stream.partition("/")
        found = []
        for number in range(_SEGMENTS):
            with segment_hash.Connection(*self.store.segment_store) as connection:
                if connection.info(f"{scope}/{short}/{number}.#epoch.0") is None:
                    continue
            found.append(
                segment_hash.segment_report(*self.store.segment_store, scope, short, number)
            )
            if len(found) == segments:
                break
        return found

    def left_over(
        self, stream: str, copy_id: str, segments: Sequence[int] = range(2 * _PARTS)
    ) -> list[str]:
        """Return the segments that a copy with this target and id has left in the store.

        The store lists no segments. So the witness asks for every name that the copy can have used.

        Args:
            stream: the target.
            copy_id: the copy's id.
            segments: ids of the target's segments.
        """
        scope, _, short = stream.partition("/")
        target = StreamName(scope=scope, stream=short)
        wanted = [
            names.staging_name(target, 0, identity.journal_key(copy_id, generation))
            for generation in range(GENERATIONS)
        ]
        wanted += [
            names.staging_name(target, segment, identity.staging_key(copy_id, index, part))
            for segment in segments
            for index in range(max(_PARTS, len(segments)))
            for part in range(_PARTS)
        ]
        with segment_hash.Connection(*self.store.segment_store) as connection:
            return [name for name in wanted if connection.info(name) is not None]

    def left_of(self, plan: Plan) -> list[str]:
        """Return the remaining segments of a scope's copy by this plan, with those of its log."""
        scope = plan.scope
        assert scope is not None
        beside = StreamName(scope=scope.target, stream=BESIDE)
        keys = [(beside, 0, identity.scope_log_key(scope.scope_id, n)) for n in range(GENERATIONS)]
        for stream in plan.streams:
            journal = (identity.journal_key(stream.copy_id, n) for n in range(GENERATIONS))
            keys += [(stream.target, 0, key) for key in journal]
            keys += [
                (stream.target, segment.id, identity.staging_key(stream.copy_id, index, part))
                for segment in stream.segments
                for index, other in enumerate(stream.segments)
                for part in range(len(other.cuts) + 1)
            ]
        wanted = [names.staging_name(*one) for one in keys]
        with segment_hash.Connection(*self.store.segment_store) as connection:
            return [name for name in wanted if connection.info(name) is not None]


def _resource(kind: str, name: str, spec: Object) -> Object:
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
