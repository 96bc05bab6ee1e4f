"""The Job of `sluice init`, as a real API server fills it in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sluice.administration.setup import differences
from sluice.core.values.model import StoreAddress
from sluice.kube.jobs.sample import PodImage, added, sample_job

if TYPE_CHECKING:
    from localcluster import Cluster
    from support.kube.apply import Applier


def test_what_the_api_server_adds_to_the_job_is_not_taken_for_another_clients(
    kube: Cluster, applier: Applier
) -> None:
    """Fields that the API server adds do not make the Job another client's."""
    address = StoreAddress(uri="tcp://here:9090", secret="login")  # noqa: S106 - a Secret's name
    job = sample_job(applier.namespace, address, PodImage("sluice:1", "Never", ("pull",)))
    words = ("create", "--filename=-", "--dry-run=server", "--output=json")
    found = json.loads(kube.kubectl(*words, stdin=json.dumps(job)))
    assert found["spec"]["selector"]
    assert list(differences(job, found)) == []
    assert list(added(job, found)) == []
