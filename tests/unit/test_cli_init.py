"""`sluice init`: its output, its refusals before any call, and its proposals."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest
import yaml

from sluice.api.kinds.streamstore import StreamStore
from sluice.kube.api import context
from sluice.kube.api.client import Api
from sluice.kube.api.kinds import STREAM_STORE
from support.kube.chart import ROOT
from support.kube.finalizing import FinalizingServer
from support.kube.pod_security import violations

if TYPE_CHECKING:
    from collections.abc import Callable

    Sluice = Callable[..., tuple[int, str, str]]

STORE = ("--store", "pravega", "--uri", "tcp://pravega.pravega-dev.svc:9090")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FinalizingServer:
    """Return the API server that the command finds; users work in the namespace team."""
    made = FinalizingServer()

    async def connect(**_: object) -> FinalizingServer:
        return made

    monkeypatch.setattr(Api, "connect", connect)
    monkeypatch.setattr(context, "current_namespace", lambda: "team")
    return made


@pytest.fixture
def sluice(run_here: Sluice) -> Sluice:
    """Return the command, which takes arguments and returns exit code, output and error."""
    return partial(run_here, "sluice", "init")


def test_a_dry_run_prints_the_objects_and_makes_none(
    server: FinalizingServer, sluice: Sluice
) -> None:
    """The objects suit kubectl. The sample's Job has a pod that every namespace admits."""
    code, out, _ = sluice(*STORE, "-n", "demo", "--sample", "--image", "sluice:1", "--dry-run")
    namespace, store, job = yaml.safe_load_all(out)
    assert code == 0
    assert (namespace["kind"], namespace["metadata"]) == ("Namespace", {"name": "demo"})
    assert StreamStore.model_validate(store).metadata.namespace == "demo"
    assert violations(job["spec"]["template"]["spec"]) == []
    code, out, _ = sluice(*STORE, "--dry-run", "-o", "json")
    (store,) = json.loads(out)["items"]  # no namespace is named, so none is made
    assert store["metadata"]["namespace"] == "team"
    assert (code, server.changes) == (0, [])


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--store", "Main", "--uri", "tcp://here:9090"), "metadata.name"),
        (("--store", "main", "--uri", "http://here:9090"), "spec.pravega.controllerURI"),
        ((*STORE, "--namespace", "A/b"), "metadata.namespace"),
    ],
)
def test_a_wrong_word_ends_it_before_anything_is_made(
    words: tuple[str, ...], field: str, server: FinalizingServer, sluice: Sluice
) -> None:
    """The message names the field."""
    code, _, err = sluice(*words)
    assert (code, server.changes) == (2, [])
    assert f"InvalidSpec: {field}: " in err


def test_it_says_what_it_did_and_what_comes_next(server: FinalizingServer, sluice: Sluice) -> None:
    """This includes another run, and a cluster with a different object."""
    code, _, err = sluice(*STORE, "-n", "demo")
    assert code == 0
    assert err == (
        "namespace/demo is made\nstreamstore/pravega is made\n"
        "Next, wait until the operator reaches the store:\nsluice wait sst/pravega -n demo\n"
    )
    assert sluice(*STORE, "-n", "demo")[2].startswith(
        "namespace/demo is there\nstreamstore/pravega is there\n"
    )
    code, _, err = sluice("--store", "pravega", "--uri", "tcp://other:1", "-n", "demo")
    assert code == 2
    assert "InvalidSpec: spec.pravega.controllerURI: StreamStore pravega is there" in err


def test_a_store_that_forbids_it_gets_no_sample(server: FinalizingServer, sluice: Sluice) -> None:
    """The rules of an existing StreamStore hold for the sample, too."""
    assert sluice(*STORE, "-n", "demo")[0] == 0
    spec = {
        "pravega": {"controllerURI": STORE[-1]},
        "access": {"operations": ["Read"]},
    }
    server.edit(STREAM_STORE, "pravega", "demo", spec=spec)
    code, _, err = sluice(*STORE, "-n", "demo", "--sample", "--image", "sluice:1")
    assert code == 2
    assert "AccessDenied: --sample: StreamStore 'pravega' does not allow to" in err


def test_the_proposed_copy_is_the_example() -> None:
    """README applies the file, and the command prints the same for any name of the store."""
    from sluice.commands.cluster.init import _COPY  # noqa: PLC0415 - few tests need it

    example = (ROOT / "examples" / "first-copy.yaml").read_text()
    assert yaml.safe_load(example) == yaml.safe_load(_COPY.replace("STORE", "pravega"))
