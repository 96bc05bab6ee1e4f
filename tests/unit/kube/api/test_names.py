"""Names and labels of the operator's objects for a copy."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.core.reconcile.copies.object_names import plan_name
from sluice.core.reconcile.shared.jobs import job_name
from sluice.core.values.text import short_hash
from sluice.kube.api import names
from sluice.kube.jobs import manifests
from support.reconcile.copies import UID
from support.reconcile.requests import RICH, executor, request

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)
UIDS = st.uuids().map(str)
ATTEMPTS = st.integers(1, 1_000_000_000)
LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


@settings(max_examples=30)
@given(name=NAMES, uid=UIDS, attempt=ATTEMPTS)
def test_names_fit_whatever_a_copy_is_called(name: str, uid: str, attempt: int) -> None:
    """Every object can be made, and a Job's pods can add to its name."""
    made = request(name=name, uid=uid, attempt=attempt)
    bodies = [
        manifests.job(made),
        manifests.run_config_map(made),
        manifests.plan_config_map(made.child, made.plan),
        manifests.controls_config_map(made.child, made.spec, 1),
    ]
    for body in bodies:
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", body["metadata"]["name"])
        for value in body["metadata"]["labels"].values():
            assert LABEL.fullmatch(value)
    assert len(bodies[0]["metadata"]["name"]) <= 63 - len("-x7k2p")
    assert len({body["metadata"]["name"] for body in bodies}) == len(bodies)


@given(first=st.tuples(NAMES, UIDS), second=st.tuples(NAMES, UIDS))
def test_no_two_copies_share_a_name(first: tuple[str, str], second: tuple[str, str]) -> None:
    """Two successive copies of one name differ, too."""
    if first[1] != second[1]:
        assert plan_name(*first) != plan_name(*second)
        assert names.controls_name(*first) != names.controls_name(*second)
        assert job_name(first[1], 1) != job_name(second[1], 1)


def test_children_go_with_their_copy() -> None:
    """Each has its copy for an owner, and is found by its labels."""
    made = request()
    for body in (
        manifests.job(made),
        manifests.run_config_map(made),
        manifests.plan_config_map(made.child, made.plan),
        manifests.controls_config_map(made.child, made.spec, 1),
    ):
        (owner,) = body["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("StreamCopy", "orders", UID)
        assert owner["controller"] is True
        assert body["metadata"]["namespace"] == "team"
        assert body["metadata"]["labels"][names.UID_LABEL] == UID


def test_a_profile_does_not_hide_the_labels_that_pods_are_found_by() -> None:
    """An administrator's labels are added. The operator's own labels stay."""
    made = request(profile=RICH, attempt=7)
    pods = manifests.job(made)["spec"]["template"]["metadata"], executor(made)["metadata"]
    for meta in pods:
        assert meta["labels"]["team"] == "data"
        assert meta["labels"][names.UID_LABEL] == UID
        assert meta["labels"]["app.kubernetes.io/name"] == "sluice"
        assert meta["annotations"] == {"mesh": "off"}
    assert [meta["labels"]["app.kubernetes.io/component"] for meta in pods] == [
        "driver",
        "executor",
    ]
    assert pods[0]["labels"][names.ATTEMPT_LABEL] == "7"


def test_jobs_sort_by_attempt_and_their_pods_are_known_in_any_version() -> None:
    """This is the order of `kubectl get jobs`. Older versions wrote no zeros."""
    found = [job_name(UID, number) for number in (1, 2, 9, 10, 99, 100, 1000)]
    assert found == sorted(found)
    older = f"sluice-{short_hash(UID)}-12"
    for job in (found[3], older):
        owner = {"kind": "Job", "name": job, "uid": "j", "controller": True}
        assert names.is_pod_of({"metadata": {"ownerReferences": [owner]}}, UID)
        assert not names.is_pod_of({"metadata": {"ownerReferences": [owner]}}, "another")
