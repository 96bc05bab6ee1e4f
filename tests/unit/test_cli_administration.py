"""The administrator's commands: their output and their exit codes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from sluice import cli
from sluice.administration.cleanup import drain
from sluice.commands.uninstall import MOST_COMMANDS
from sluice.core.claims.claim import Claim, Claimant
from sluice.engine.claims import claims, scope_lifecycle
from sluice.kube.api.client import Api
from sluice.kube.api.kinds import EPHEMERAL_STREAM, NAMESPACE, STREAM_STORE
from sluice.kube.api.objects import STREAMS_FINALIZER
from sluice.kube.stores import connections
from sluice.kube.stores.dependents import KINDS
from support.cases import resources
from support.command.spelling import parsed
from support.kube.finalizing import FinalizingServer
from support.model import ModelStore, World

if TYPE_CHECKING:
    from collections.abc import Callable

UID = "0b1d9c8e-0000-4000-8000-000000000001"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLUICE_CLUSTER_ID", raising=False)
    monkeypatch.setattr(scope_lifecycle, "_gates", {})
    monkeypatch.setattr(drain, "POLL_SECONDS", 0.001)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FinalizingServer:
    """Return the API server that commands find."""
    made = FinalizingServer()
    made.put(NAMESPACE, {"metadata": {"name": "kube-system", "uid": "here", "namespace": None}})

    async def connect() -> FinalizingServer:
        return made

    monkeypatch.setattr(Api, "connect", connect)
    return made


@pytest.fixture
def world(server: FinalizingServer, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return the store of a StreamStore, with a stream whose resource is gone."""
    server.put(STREAM_STORE, resources.changed(resources.STORE, "metadata.name", "local"))
    made = World()
    who = Claimant(cluster="here", namespace="team", name="old", uid=UID, created=1000)
    claims.make(Claim(claimant=who, scope="in", stream="left"), ModelStore(made), 2000)
    monkeypatch.setattr(connections, "connect", lambda *_, **__: ModelStore(made))
    return made


@pytest.fixture
def sluice(run_here: Callable[..., tuple[int, str, str]]) -> Callable[..., tuple[int, str, str]]:
    """Return the program, which takes arguments and returns exit code, output and error."""
    return partial(run_here, "sluice")


def hold(server: FinalizingServer) -> None:
    """Put an EphemeralStream that has its stream."""
    body = resources.changed(resources.EPHEMERAL, "metadata.finalizers", [STREAMS_FINALIZER])
    body["metadata"]["namespace"] = "default"
    server.put(EPHEMERAL_STREAM, body)


def test_draining_an_empty_cluster_is_well(
    server: FinalizingServer, sluice: Callable[..., tuple[int, str, str]]
) -> None:
    """This holds for any policy."""
    assert server
    for policy in ("refuse", "delete", "orphan"):
        code, out, err = sluice("drain", "--policy", policy)
        assert (code, out) == (0, "")
        assert "the operator can be uninstalled" in err


def test_a_refusal_says_what_is_held_and_what_to_do(
    server: FinalizingServer, sluice: Callable[..., tuple[int, str, str]]
) -> None:
    """The exit code is 2. The remedy comes last, where a pod's termination message shows it."""
    hold(server)
    code, out, err = sluice("drain", "--policy", "refuse")
    assert (code, out) == (2, "")
    lines = err.splitlines()
    assert lines[0] == "EphemeralStream default/helper: StreamStore local, scope in: helper"
    assert lines[1].startswith("REFUSED: 1 resource is listed above.")
    assert lines[3] == "  kubectl -n default delete ephemeralstreams helper"
    assert "sluice drain --policy orphan" in lines[4]


def test_a_refusal_advises_to_delete_just_what_it_lists(
    server: FinalizingServer, sluice: Callable[..., tuple[int, str, str]]
) -> None:
    """The advice has each resource's kind, name and namespace, and no other resource."""
    held = {
        (kind, namespace, f"{namespace}-{kind.plural}")
        for kind in KINDS
        for namespace in ("one", "two")
    }
    for kind, namespace, name in held:
        for mine, finalizers in ((name, [KINDS[kind]]), (f"{name}-done", [])):
            metadata = {"name": mine, "namespace": namespace, "finalizers": finalizers}
            server.put(kind, {"metadata": metadata, "spec": {}})
    _, _, err = sluice("drain", "--policy", "refuse")
    advice = err.splitlines()[len(held) :]
    shown = [line.split() for line in advice if line.startswith("  kubectl")]
    told = {(words[2], words[4], name) for words in shown for name in words[5:]}
    assert told <= {(namespace, kind.plural, name) for kind, namespace, name in held}
    assert len(told) == MOST_COMMANDS
    assert "sluice drain --policy refuse, which tells the rest" in err
    assert len("\n".join(advice)) < 2048, "a termination message is no longer"


def test_what_could_not_be_deleted_is_told(
    server: FinalizingServer, sluice: Callable[..., tuple[int, str, str]]
) -> None:
    """The exit code is 3, and the message names the resources."""
    hold(server)
    code, _, err = sluice("drain", "--policy", "delete", "--timeout", "0.05")
    assert code == 3
    assert "EphemeralStream default/helper (being deleted): StreamStore local" in err
    assert "LEFT: 1 resource is still there." in err


def test_draining_needs_a_policy(sluice: Callable[..., tuple[int, str, str]]) -> None:
    """There is no default."""
    code, _, err = sluice("drain")
    assert code == 2
    assert "--policy" in err


def test_stale_streams_are_listed(
    world: World, sluice: Callable[..., tuple[int, str, str]]
) -> None:
    """The list is text or JSON, and nothing is changed."""
    assert sluice("streams", "stale") == (
        0,
        "StreamStore default/local (tcp://127.0.0.1:9090) scope in: left; was of team/old\n",
        "",
    )
    code, out, err = sluice("streams", "stale", "--output", "json")
    assert (code, err) == (0, "")
    assert parsed(out) == [
        {
            "namespace": "default",
            "streamStore": "local",
            "uri": "tcp://127.0.0.1:9090",
            "scope": "in",
            "stream": "left",
            "streamPrefix": None,
            "streams": ["left"],
            "resource": "team/old",
            "uid": UID,
            "deleted": None,
        }
    ]
    assert len(world.streams) == 1


def test_the_cluster_may_be_given(
    world: World, sluice: Callable[..., tuple[int, str, str]]
) -> None:
    """If the operator has a configured identity, its tags have that identity."""
    assert world
    code, out, _ = sluice("streams", "stale", "--cluster-id", "paris")
    assert (code, out) == (0, "There are no streams whose EphemeralStream is gone.\n")


def test_deleting_asks(world: World, server: FinalizingServer) -> None:
    """A no stops it, a missing user is wrong input, and --yes does not ask."""
    assert server
    arguments = ["streams", "stale", "--delete"]
    asked = CliRunner().invoke(cli.cli, arguments, input="n\n")
    assert asked.exit_code == 0
    assert "Delete these 1 streams and what is in them?" in asked.stderr
    nobody = CliRunner().invoke(cli.cli, arguments, input="")
    assert nobody.exit_code == 2
    assert "--yes" in nobody.stderr
    assert len(world.streams) == 1
    done = CliRunner().invoke(cli.cli, [*arguments, "--yes", "--output", "json"])
    assert done.exit_code == 0
    assert [one["deleted"] for one in parsed(done.stdout)] == [1]
    assert world.streams == {}


def test_a_store_that_cannot_be_asked_is_told(
    world: World,
    sluice: Callable[..., tuple[int, str, str]],
    server: FinalizingServer,
) -> None:
    """The exit code shows it, too: an empty list must not look complete."""
    assert world
    auth = {"basic": {"secretRef": {"name": "login"}}}
    body = resources.changed(resources.STORE, "spec.pravega.auth", auth)
    server.put(STREAM_STORE, resources.changed(body, "metadata.name", "other"))
    code, out, err = sluice("streams", "stale")
    assert code == 2
    assert "scope in: left" in out
    assert "StreamStore default/other could not be asked:" in err
    assert "there is no Secret 'login'" in err
