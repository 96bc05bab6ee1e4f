"""Completion in shells: commands, kinds, and the names of a cluster's resources."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import pytest

from sluice import cli
from sluice.commands.cluster import completion
from sluice.kube.api import context
from sluice.kube.api.client import Api
from sluice.kube.api.kinds import OWN
from sluice.kube.api.responses import Refused
from support.cases import resources
from support.kube.finalizing import FinalizingServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice.kube.api.kinds import Object

    Complete = Callable[..., list[str]]


class Slow(FinalizingServer):
    """A server that never answers about names, once it hangs."""

    hangs = False

    async def table(self, *arguments: Any, **options: Any) -> Object:
        """See Api.table."""
        if self.hangs:
            await asyncio.Event().wait()
        return await super().table(*arguments, **options)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Slow:
    """Return the API server that commands find, with resources in two namespaces."""
    made = Slow()
    for like, name, namespace in (
        (resources.COPY, "orders", "team"),
        (resources.SCOPE, "orders", "team"),
        (resources.STORE, "outlet", "team"),
        (resources.COPY, "far", "far"),
    ):
        meta = {"name": name, "namespace": namespace}
        made.put(OWN[like["kind"]], resources.changed(like, "metadata", meta))

    async def connect() -> Slow:
        return made

    monkeypatch.setattr(Api, "connect", connect)
    monkeypatch.setattr(context, "current_namespace", lambda: "team")
    monkeypatch.setattr(completion, "DEADLINE", 0.05)
    return made


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Complete:
    """Return the completion as kubectl calls it: from words to candidates."""

    def call(*words: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", ["kubectl_complete-sluice", *words])
        cli.complete_for_kubectl()
        *found, last = capsys.readouterr().out.splitlines()
        assert last == ":4"
        return [line.partition("\t")[0] for line in found]

    return call


def test_commands_and_options_are_completed(complete: Complete) -> None:
    """Commands that pods run are not offered."""
    assert complete("re") == ["restore", "resume", "retry"]
    assert complete("dr") == ["drain"]
    assert complete("get", "--sel") == ["--selector"]
    assert complete("get", "-o", "w") == ["wide"]


def test_names_are_completed_with_and_without_their_kind(server: Slow, complete: Complete) -> None:
    """They are those of the named namespace, or of the present one."""
    assert server
    assert complete("wait", "o") == ["orders", "outlet"]
    assert complete("wait", "scopy/") == ["scopy/orders"]
    assert complete("wait", "s") == [
        "scopecopy/orders",
        "streamcopy/orders",
        "streamstore/outlet",
    ]
    assert complete("wait", "-n", "far", "scopy/") == ["scopy/far"]
    assert complete("logs", "ou") == []


def test_kinds_come_first_and_then_their_names(server: Slow, complete: Complete) -> None:
    """A name that is already on the line is not offered again."""
    assert server
    assert complete("get", "streamc") == ["streamcopy", "streamcopies"]
    assert complete("get", "scopy", "") == ["orders"]
    assert complete("get", "scopy", "orders", "") == []
    assert complete("get", "scopy/o") == ["scopy/orders"]
    assert complete("get", "pods", "") == []


def test_a_cluster_that_is_slow_or_refuses_completes_nothing(
    server: Slow, complete: Complete, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell does not wait, and shows no error."""
    server.hangs = True
    assert complete("wait", "o") == []

    async def fail(*_: Any, **__: Any) -> None:
        raise Refused("not you", status=403, why="Forbidden")

    monkeypatch.setattr(server, "table", fail)
    assert complete("wait", "o") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_asks_this_program(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program listens to a variable."""
    monkeypatch.setattr(sys, "argv", ["kubectl-sluice", "completion", shell])
    cli.main()
    script = capsys.readouterr().out
    assert f"_SLUICE_COMPLETE={shell}_complete" in script
    monkeypatch.setattr(sys, "argv", ["sluice"])
    monkeypatch.setenv("_SLUICE_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "sluice sus")
    monkeypatch.setenv("COMP_CWORD", "sus" if shell == "fish" else "1")
    with pytest.raises(SystemExit):
        cli.main()
    assert "suspend" in capsys.readouterr().out
