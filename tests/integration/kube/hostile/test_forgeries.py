"""Forged children and annotations of a hostile tenant's resources, which the operator ignores."""

from __future__ import annotations

import base64
import json
from itertools import product
from typing import TYPE_CHECKING, Final

import pytest

from sluice.core.reconcile.copies.object_names import plan_name
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.values.model import StoreAddress
from sluice.core.workloads.plan import StreamCopyPlan
from sluice.kube.api.names import ATTEMPT_LABEL, child_labels, controls_name
from sluice.kube.api.objects import FORCE_ORPHAN, REQUESTED_AT, STAGING_FINALIZER
from support.search import few
from support.tenants.evil import HELD, LOGIN, PRECIOUS
from support.tenants.evil_resources import MAKES, copy, owner_of

if TYPE_CHECKING:
    from support.tenants.evil import Evil, Object

pytestmark = pytest.mark.timeout(400)

FORGERIES: Final = ("plain", "immutable", "owned", "stated", "own Secret", "spoiled", "packed")


@pytest.mark.parametrize(
    ("kind", "forgery"),
    few(
        product(MAKES, FORGERIES),
        [*product(["streamcopy"], FORGERIES), *product(MAKES, ["own Secret"])],
    ),
)
def test_a_plan_that_the_operator_did_not_write_leads_nowhere(
    evil: Evil, kind: str, forgery: str
) -> None:
    """A copy without its StreamStore connects to no address of a forged plan."""
    name = f"{kind}-{FORGERIES.index(forgery)}"
    secret = PRECIOUS if forgery == "own Secret" else evil.way
    honest = StreamCopyPlan(
        sources=(), streams=(), target=StoreAddress(uri=evil.hidden.uri, secret=PRECIOUS)
    )
    text = honest.model_dump_json().replace(PRECIOUS, secret)
    body = MAKES[kind](name, finalizers=[STAGING_FINALIZER])
    if forgery in {"stated", "own Secret"}:
        body["status"] = {"planDigest": honest.digest}
    made = evil.make(body)
    uid = made["metadata"]["uid"]
    assert "planDigest" not in made.get("status", {})
    plan: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": plan_name(name, uid), "labels": child_labels(uid, "plan")},
        "immutable": forgery != "plain",
        "data": {"plan.json": "{" if forgery == "spoiled" else text},
    }
    if forgery == "packed":
        plan["binaryData"] = {"plan.json.gz": base64.b64encode(text.encode()).decode()}
    if forgery in {"owned", "stated", "own Secret"}:
        plan["metadata"]["ownerReferences"] = [owner_of(made)]
    evil.make(plan)
    evil.delete(kind, name)
    evil.look(kind, name)


def _job(name: str, labels: dict[str, str]) -> Object:
    box = {"name": "x", "image": "localhost/none"}
    template = {"spec": {"restartPolicy": "Never", "containers": [box]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {"suspend": True, "template": template},
    }


def _pod(name: str, labels: dict[str, str]) -> Object:
    spec = {"nodeSelector": {"taken-by": "nobody"}, "containers": [{"name": "x", "image": "x"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }


@pytest.mark.parametrize("foreign", ["Job of a label", "Job of our name", "Pod of a label"])
def test_a_job_or_pod_with_our_labels_is_neither_ours_nor_deleted(evil: Evil, foreign: str) -> None:
    """A copy's deletion ends its own Jobs, but no forged Job or pod with Sluice's labels."""
    name = foreign.lower().replace(" ", "-")
    uid = evil.make(copy(name, finalizers=[STAGING_FINALIZER]))["metadata"]["uid"]
    labels = child_labels(uid, "driver") | {ATTEMPT_LABEL: "1"}
    own = job_name(uid, 1) if "name" in foreign else f"cloned-{name}"
    kind = foreign.partition(" ")[0]
    stored = evil.make((_job if kind == "Job" else _pod)(own, labels))
    evil.look("streamcopy", name)
    evil.delete("streamcopy", name)
    evil.look("streamcopy", name)
    found = evil.get(kind, own)
    assert found is not None
    assert found["metadata"]["uid"] == stored["metadata"]["uid"]
    assert "deletionTimestamp" not in found["metadata"]


NOTES: Final = {
    "a time that is none": {REQUESTED_AT: "../../victim"},
    "a long time": {REQUESTED_AT: "9" * 200_000},
    "an orphan of a way": {FORCE_ORPHAN: f"../../victim/secrets/{LOGIN}"},
    "a held Secret of a copy": {HELD: f"../../victim/secrets/{LOGIN}"},
}


@pytest.mark.parametrize("note", NOTES)
def test_annotations_of_a_copy_are_read_as_text(evil: Evil, note: str) -> None:
    """Annotations of a copy are text to the operator. The copy gets the usual status."""
    name = f"noted-{list(NOTES).index(note)}"
    evil.make(copy(name, annotations=NOTES[note]))
    evil.look("streamcopy", name)
    found = evil.get("streamcopy", name)
    assert found is not None
    assert "StoreNotFound" in json.dumps(found["status"])


def test_controls_of_a_tenants_own_lead_nowhere(evil: Evil) -> None:
    """The operator reads only the numbers of forged controls."""
    made = evil.make(copy("controlled"))
    uid = made["metadata"]["uid"]
    evil.make(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": controls_name("controlled", uid),
                "ownerReferences": [owner_of(made)],
            },
            "data": {"controls.json": json.dumps({"bytesPerSecond": evil.way})},
        }
    )
    evil.look("streamcopy", "controlled")
