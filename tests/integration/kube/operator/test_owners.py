"""Owners of EphemeralStreams at a real API server, and the watches that follow them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
import yaml

from sluice.api.kinds.ephemeralstream import Owner
from sluice.kube.ephemeral.owner_watch import WatchTimeouts
from sluice.kube.ephemeral.owners import LABEL
from support.kube.definitions import left
from support.kube.link import Link
from support.kube.sight import POLL, sight

if TYPE_CHECKING:
    from pathlib import Path

    from localcluster import Cluster
    from sluice.core.reconcile.ephemeral.world import OwnerSeen
    from sluice.kube.api.kinds import Object

WORK = Owner(apiVersion="apps/v1", kind="Deployment", name="work")


class Hands:
    """The actions of users in a namespace."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace

    async def run(self, *words: str, stdin: str | None = None) -> str:
        """Run kubectl, and return its output."""
        command = (f"--namespace={self._namespace}", *words)
        return await asyncio.to_thread(self._cluster.kubectl, *command, stdin=stdin)

    async def make(self, body: Object) -> str:
        """Make an object, and return its UID."""
        path = "--output=jsonpath={.metadata.uid}"
        return await self.run("create", "--filename=-", path, stdin=yaml.safe_dump(body))

    async def remove(self, kind: str, name: str) -> None:
        """Delete an object, and wait until it is gone."""
        await self.run("delete", kind, name)


@pytest.fixture
def hands(kube: Cluster, namespace: str) -> Hands:
    """Return the actions of users."""
    return Hands(kube, namespace)


def deployment(name: str = "work") -> Object:
    """Return a Deployment without pods."""
    labels = {"app": name}
    container = {"name": "main", "image": "localhost/none"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def job(name: str, **spec: Any) -> Object:
    """Return a Job."""
    container = {"name": "main", "image": "localhost/none"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template} | spec,
    }


def is_there(found: OwnerSeen) -> bool:
    """Tell whether an owner is there."""
    return found.uid is not None


def is_absent(found: OwnerSeen) -> bool:
    """Tell whether there is no owner."""
    return found.uid is None and found.trouble is None


def test_an_owner_comes_goes_and_comes_again(kube: Cluster, namespace: str, hands: Hands) -> None:
    """Each change of an owner wakes the reconciler. A recreated owner has its new UID."""

    async def story() -> None:
        async with sight(kube.kubeconfig, namespace) as eyes:
            assert is_absent(await eyes.look(WORK))
            first = await hands.make(deployment())
            assert (await eyes.until(WORK, is_there)).uid == first
            assert (await eyes.confirm(WORK)).uid == first
            before = eyes.api.calls
            assert [(await eyes.look(WORK)).uid for _ in range(50)] == [first] * 50
            assert eyes.api.calls == before, "the watch answers"
            await hands.remove("deployment", "work")
            await eyes.until(WORK, is_absent)
            assert is_absent(await eyes.confirm(WORK))
            second = await hands.make(deployment())
            assert (await eyes.until(WORK, is_there)).uid == second != first

    asyncio.run(story())


def test_a_job_that_is_finished_is_seen_as_such(
    kube: Cluster, namespace: str, hands: Hands
) -> None:
    """A completed Job is present and finished. A waiting Job is not finished."""
    waiting = Owner(apiVersion="batch/v1", kind="Job", name="waiting")
    done = Owner(apiVersion="batch/v1", kind="Job", name="done")

    async def story() -> None:
        async with sight(kube.kubeconfig, namespace) as eyes:
            assert is_absent(await eyes.look(done))
            await hands.make(job("waiting", suspend=True))
            uid = await hands.make(job("done", completions=0))
            finished = await eyes.until(done, lambda found: found.finished)
            assert finished.uid == uid
            assert (await eyes.confirm(done)) == finished
            assert not (await eyes.until(waiting, is_there)).finished

    asyncio.run(story())


@pytest.fixture
def trains() -> Object:
    """Return a definition with two versions, for this test alone, not installed yet."""
    group = f"owners-{uuid4().hex[:8]}.example.com"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"trains.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "trains", "singular": "train", "kind": "Train"},
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == "v2",
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
                for name in ("v1", "v2")
            ],
        },
    }
    return left(definition)


def test_a_custom_kind_that_comes_late(
    kube: Cluster, namespace: str, hands: Hands, trains: Object
) -> None:
    """A late kind is awaited, and its objects are seen. An unserved kind is not an absent owner."""
    group, name = trains["spec"]["group"], trains["metadata"]["name"]
    express = Owner(apiVersion=f"{group}/v1", kind="Train", name="express")

    async def story() -> None:
        async with sight(kube.kubeconfig, namespace) as eyes:
            found = await eyes.look(express)
            assert found.trouble is not None
            assert found.trouble.reason == "OwnerKindNotFound"
            assert f"no Train of {group}/v1" in found.trouble.message
            await hands.make(trains)

            async def is_known() -> bool:
                return is_absent(await eyes.look(express))

            await eyes.wait(is_known)
            uid = await hands.make(
                {
                    "apiVersion": f"{group}/v1",
                    "kind": "Train",
                    "metadata": {"name": "express"},
                }
            )
            assert (await eyes.until(express, is_there)).uid == uid
            state = {"conditions": [{"type": "Succeeded", "status": "True"}]}
            await hands.run(
                "patch",
                f"trains.{group}",
                "express",
                "--subresource=status",
                "--type=merge",
                f"--patch={json.dumps({'status': state})}",
            )
            await eyes.until(express, lambda found: found.finished)
            retire = [{"op": "replace", "path": "/spec/versions/0/served", "value": False}]
            await hands.run("patch", "crd", name, "--type=json", f"--patch={json.dumps(retire)}")

            async def is_unknown() -> bool:
                found = await eyes.confirm(express)
                assert not is_absent(found)
                return found.trouble is not None and found.trouble.reason == "OwnerKindNotFound"

            await eyes.wait(is_unknown)

    asyncio.run(story())


def test_owners_have_to_be_in_a_namespace(kube: Cluster, namespace: str) -> None:
    """An owner of a cluster-wide kind is refused."""
    node = Owner(apiVersion="v1", kind="Node", name="any")

    async def story() -> None:
        async with sight(kube.kubeconfig, namespace) as eyes:
            for found in (await eyes.look(node), await eyes.confirm(node)):
                assert found.trouble is not None
                assert found.trouble.reason == "InvalidSpec"
                assert "in no namespace" in found.trouble.message

    asyncio.run(story())


@pytest.fixture
def stranger(kube: Cluster, namespace: str, tmp_path: Path) -> Path:
    """Return the kubeconfig of a service account without rights."""
    kube.kubectl("create", "serviceaccount", "stranger", f"--namespace={namespace}")
    token = kube.kubectl("create", "token", "stranger", f"--namespace={namespace}").strip()
    config = yaml.safe_load(kube.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": token}
    path = tmp_path / "stranger"
    path.write_text(yaml.safe_dump(config))
    return path


def test_a_missing_right_is_said_and_not_asked_for_again(
    namespace: str, hands: Hands, stranger: Path
) -> None:
    """Without rights there is one refusal a minute. With `get` alone, each look asks."""

    async def story() -> None:
        uid = await hands.make(deployment())
        async with sight(stranger, namespace) as eyes:
            found = await eyes.look(WORK)
            assert found.trouble is not None
            assert found.trouble.reason == "OwnerForbidden"
            assert "get deployments.apps 'work'" in found.trouble.message
            assert LABEL in found.trouble.message
            before = eyes.api.calls
            for _ in range(50):
                assert (await eyes.look(WORK)).trouble == found.trouble
                assert (await eyes.confirm(WORK)).trouble == found.trouble
            assert eyes.api.calls == before
        await hands.run("create", "role", "get", "--verb=get", "--resource=deployments.apps")
        account = f"--serviceaccount={namespace}:stranger"
        await hands.run("create", "rolebinding", "get", "--role=get", account)
        async with sight(stranger, namespace, WatchTimeouts(refused=POLL)) as eyes:

            async def is_seen() -> bool:
                return (await eyes.look(WORK)).uid == uid

            await eyes.wait(is_seen)
            await hands.remove("deployment", "work")
            assert is_absent(await eyes.look(WORK))
            uids = [await hands.make(deployment())]
            assert [(await eyes.look(WORK)).uid] == uids

    asyncio.run(story())


@pytest.mark.parametrize("harm", ["cut", "freeze"])
def test_a_watch_survives_its_connection(
    harm: str, kube: Cluster, namespace: str, hands: Hands, tmp_path: Path
) -> None:
    """A change during a broken or hanging connection is seen by the next connection."""
    through = tmp_path / "kubeconfig"

    async def story(link: Link) -> None:
        async with sight(through, namespace, WatchTimeouts(silence=2)) as eyes:
            first = await hands.make(deployment())
            assert (await eyes.until(WORK, is_there)).uid == first
            for _ in range(2):
                getattr(link, harm)()
                await hands.remove("deployment", "work")
                again = await hands.make(deployment())
                await eyes.until(WORK, lambda found, uid=again: found.uid == uid)
            link.cut()

    with Link.to(kube.kubeconfig, through) as link:
        asyncio.run(story(link))


def test_a_watch_that_nobody_asks_ends(kube: Cluster, namespace: str, hands: Hands) -> None:
    """A watch ends some time after its last use. The next look begins a new one."""

    async def story() -> None:
        async with sight(kube.kubeconfig, namespace, WatchTimeouts(idle=1)) as eyes:
            assert is_absent(await eyes.look(WORK))
            (watch,) = eyes.owners._watches.values()

            async def is_over() -> bool:
                return watch.ended

            await eyes.wait(is_over)
            uid = await hands.make(deployment())
            assert (await eyes.look(WORK)).uid == uid
            (another,) = eyes.owners._watches.values()
            assert another is not watch

    asyncio.run(story())
