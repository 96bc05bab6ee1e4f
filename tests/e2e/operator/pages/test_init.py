"""`sluice init` on a cluster, where its Job makes the sample stream in the store."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from sluice.engine.streams.sample import EVENTS, SAMPLE
from support.command.warm import SLUICE
from support.store.scopes import names_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from localcluster import Cluster
    from localcluster.store import ClusterStore
    from localstore import ForeignClient
    from support.tenants.tenant import Tenant

NAME = (SAMPLE.scope, SAMPLE.stream)


@pytest.fixture
def init(
    kube: Cluster, tenant: Tenant, store: ClusterStore
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs `sluice init` in the tenant's namespace."""

    def run(*words: str, uri: str = store.uri) -> subprocess.CompletedProcess[str]:
        options = ["--store", "store", "--uri", uri, "--namespace", tenant.namespace]
        return subprocess.run(
            [SLUICE, "init", *options, *words],
            env=os.environ | {"KUBECONFIG": str(kube.kubeconfig)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


@pytest.mark.exhaustive
def test_the_sample_is_made_once_and_no_other_stream_is_touched(
    tenant: Tenant,
    java: ForeignClient,
    init: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    """A foreign stream of the name is refused by its field, with the Job's output.

    Once that stream is gone, the same command makes the sample. A further run writes nothing.
    """
    if SAMPLE.stream in (names_in(java, SAMPLE.scope) or ()):
        java.seal(*NAME)
        java.delete(*NAME)
    java.create_scope(SAMPLE.scope)
    java.create(*NAME, segments=3)
    java.write(*NAME, events=10)
    refused = init("--sample")
    assert refused.returncode == 2, refused.stderr
    assert f"scaling: there is a stream {SAMPLE} already" in refused.stderr
    assert java.read(*NAME).events == 10
    java.seal(*NAME)
    java.delete(*NAME)
    for _ in range(2):
        done = init("--sample")
        assert done.returncode == 0, done.stderr
        assert "streamstore/store is there" in done.stderr
        read = java.read(*NAME)
        assert (read.events, read.duplicates) == (EVENTS, 0)
    assert tenant.condition("store", resource="sst")["status"] == "True"
    java.seal(*NAME)
    java.delete(*NAME)


def test_what_differs_in_the_cluster_is_named_and_kept(
    tenant: Tenant,
    store: ClusterStore,
    init: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    """A different resource is named by field and kept. A dry run makes nothing."""
    refused = init(uri="tcp://elsewhere:9090")
    assert refused.returncode == 2
    assert "spec.pravega.controllerURI" in refused.stderr
    kept = tenant.get("sst", "store") or {}
    assert kept["spec"]["pravega"]["controllerURI"] == store.uri
    shown = init("--sample", "--dry-run", "-o", "json")
    kinds = [one["kind"] for one in json.loads(shown.stdout)["items"]]
    assert kinds == ["Namespace", "StreamStore", "Job"]
    assert tenant.get_all("jobs") == []
