"""A stream's move to another store and back, by the runbook's commands and an operator."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from localstore import Standalone
from support.cluster.node import Node
from support.command.runbook import Runbook
from support.until import PATIENTLY
from support.witness.application import Application

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from localstore import ForeignClient
    from support.cluster.local_operator import LocalOperator
    from support.tenants.tenant import Tenant

pytestmark = pytest.mark.timeout(900)

PAGE: Final = Path(__file__).parents[4] / "docs" / "migration.md"
READ: Final = 600
"""Events that each reader takes before it closes, in one store and in the other."""


@pytest.fixture(scope="module")
def operator_settings() -> dict[str, Any]:
    """Return the operator's settings, with an identity of the cluster as users have."""
    return {"clusterID": ""}


@pytest.fixture(scope="module")
def new(announce: Callable[[str], AbstractContextManager[None]]) -> Iterator[Standalone]:
    """Yield the new store of streams."""
    server = Standalone(heap="1g")
    with announce("another Pravega standalone"):
        server.start()
    yield server
    server.stop()


@dataclass
class Migration:
    """A stream with writers and readers in the old store, and the page that moves it.

    Attributes:
        page: the page's commands.
        tenant: the namespace.
        scope: the streams' scope.
        old, new: the Java clients of both stores.
        app: the application.
    """

    page: Runbook
    tenant: Tenant
    scope: str
    old: ForeignClient
    new: ForeignClient
    app: Application = field(default_factory=Application)

    def begin(self) -> None:
        """Make the stream, write and read it, and start to follow it."""
        self.old.create(self.scope, "orders", segments=2)
        self.old.create_group(self.scope, "billing", "orders")
        self.app.write(self.old, self.scope, "orders")
        assert "orders" in self.page.run("prepare")
        self.page.run("begin")
        self.app.take(self.old, self.scope, "billing", events=READ)
        assert "behind; proved to" in self.page.run("watch")
        assert "Equal" in self.page.run("check")


@pytest.fixture
def migration(
    local_operator: LocalOperator,
    standalone: Standalone,
    new: Standalone,
    scope: str,
    foreign: ForeignClient,
    foreign_for: Callable[..., ForeignClient],
    tmp_path: Path,
) -> Iterator[Migration]:
    """Yield a migration from one store to another. Delete its resources afterwards."""
    tenant = local_operator.tenant
    kubeconfig = tmp_path / "kubeconfig"
    shutil.copy(tenant.cluster.kubeconfig, kubeconfig)
    texts = {
        r"tcp://pravega-old:9090": standalone.controller_uri,
        r"tcp://pravega-new:9090": new.controller_uri,
        r"\bshop\b": scope,
        r"\borders-team\b": tenant.namespace,
    }
    (folder := tmp_path / "page").mkdir()
    (pods := tmp_path / "pods").mkdir()
    page = Runbook(PAGE, folder, texts, kubeconfig)
    with Node(tenant, pods):
        yield Migration(page, tenant, scope, foreign, foreign_for(new.controller_uri))
        tenant.run("delete", "scopy", "--all", PATIENTLY)


@pytest.mark.exhaustive
def test_a_stream_moves_by_drain_and_back(migration: Migration, say: Callable[[str], None]) -> None:
    """At the end the old stream has each event once, in order, and each was read once."""
    page, app, scope = migration.page, migration.app, migration.scope
    migration.begin()
    page.run("drain")
    migration.tenant.until_reason("orders", "Draining")
    page.run("take-back")
    assert migration.tenant.reason("orders") == "Following"
    app.take(migration.old, scope, "billing", events=READ)
    closed = time.monotonic()
    app.stop()
    began = time.monotonic()
    page.run("drain")
    page.run("done")
    say(f"  Drain: writers stood still for {time.monotonic() - began:.1f} s")
    app.write(migration.new, scope, "orders")
    assert page.run("groups").endswith("billing: Made\n")
    say(f"  Drain: readers stood still for {time.monotonic() - closed:.1f} s")
    page.run("late")
    app.take(migration.new, scope, "billing", events=READ)
    assert "Equal" in page.run("check-again")
    app.stop()
    began = time.monotonic()
    app.take(migration.new, scope, "billing")
    read = time.monotonic()
    cut = page.run("back").splitlines()[-1]
    say(f"  back: {time.monotonic() - read:.1f} s, after {read - began:.1f} s of reading the rest")
    migration.old.create_group(scope, "billing-back", "orders", cut=cut)
    app.write(migration.old, scope, "orders")
    app.take(migration.old, scope, "billing-back", events=READ)
    app.stop()
    app.take(migration.old, scope, "billing-back")
    app.check(migration.old.read(scope, "orders"))


@pytest.mark.exhaustive
def test_a_stream_moves_by_a_seal_and_back_by_the_second_way(
    migration: Migration, say: Callable[[str], None]
) -> None:
    """Events that the old store confirmed are kept. Refused ones are written to the new one."""
    page, app, scope = migration.page, migration.app, migration.scope
    migration.begin()
    page.run("second-way")
    app.take(migration.old, scope, "billing", events=READ)
    closed = time.monotonic()
    app.stop(1)
    began = time.monotonic()
    page.run("seal")
    page.run("done")
    say(f"  SealAndDrain: writers stood still for {time.monotonic() - began:.1f} s at most")
    assert migration.old.info(scope, "orders").sealed
    app.refused(migration.old.read(scope, "orders").events)
    app.write(migration.new, scope, "orders")
    page.run("groups")
    say(f"  SealAndDrain: readers stood still for {time.monotonic() - closed:.1f} s")
    app.take(migration.new, scope, "billing", events=READ)
    app.stop()
    began = time.monotonic()
    page.run("second-cutover")
    say(f"  second way: stood still for {time.monotonic() - began:.1f} s")
    app.write(migration.old, scope, "orders-2")
    app.take(migration.old, scope, "billing-2", events=READ)
    app.stop()
    app.take(migration.old, scope, "billing-2")
    app.check(migration.old.read(scope, "orders-2"))
