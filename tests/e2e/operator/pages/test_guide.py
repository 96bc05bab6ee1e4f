"""The examples and screens of the guides, compared with a cluster.

`SLUICE_UPDATE_SCREENS=1` writes today's screens into the guides instead of comparing them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from localcluster.release import restrict
from support.command import screens as pages
from support.command.screens import Screen
from support.store.scopes import names_in
from support.tenants.tenant import Tenant
from support.until import PATIENTLY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.operator.conftest import Operator
    from localcluster import Cluster
    from localcluster.store import ClusterStore
    from localstore import ForeignClient

ROOT: Final = Path(__file__).parents[4]
COPY_GUIDE: Final = ROOT / "docs" / "streamcopy.md"
STORE_GUIDE: Final = ROOT / "docs" / "streamstore.md"
SHARED_GUIDE: Final = ROOT / "docs" / "shared-stores.md"
EPHEMERAL_GUIDE: Final = ROOT / "docs" / "ephemeralstream.md"
SCOPE_GUIDE: Final = ROOT / "docs" / "scopecopy.md"
SCOPE_ARCHIVES: Final = ROOT / "docs" / "scope-archives.md"
GUIDES: Final = (
    COPY_GUIDE,
    STORE_GUIDE,
    SHARED_GUIDE,
    EPHEMERAL_GUIDE,
    SCOPE_GUIDE,
    SCOPE_ARCHIVES,
)
PAGES: Final = (ROOT / "README.md", *GUIDES, ROOT / "docs" / "screens.md")

NAMESPACE: Final = "sluice-test-guide"
SEGMENTS: Final = 4
EVENTS: Final = {"orders": 1_000_000, "clicks": 300_000, "carts": 300_000}
MARKET: Final = {"bids": 20_000, "offers": 5_000, "trades": 500}
SLOW: Final = {"bytesPerSecond": "1Mi"}


WAIT: Final = "--for=condition=Ready --timeout=10m"
SCREENS: Final = {
    "sst-wait": Screen(f"wait sst/main {WAIT}"),
    "sst-get": Screen("get sst -o wide"),
    "sst-describe": Screen("describe sst main", "Status:"),
    "wait": Screen(f"wait scopy/orders {WAIT}"),
    "get": Screen("get scopy"),
    "wide": Screen("get scopy -o wide"),
    "running": Screen("describe scopy clicks", "Status:"),
    "done": Screen("describe scopy orders", "Status:"),
    "failed": Screen("describe scopy payments", "Status:"),
    "suspended": Screen("describe scopy carts", "Status:"),
    "events": Screen("events --for streamcopy/carts"),
    "explain": Screen("explain scopy.spec.runtime.executors"),
    "sccp-wait": Screen(f"wait sccp/market {WAIT}"),
    "sccp-get": Screen("get sccp"),
    "sccp-wide": Screen("get sccp -o wide"),
    "sccp-failed": Screen("describe sccp backup", "Status:"),
    "eps-wait": Screen(f"wait eps/totals {WAIT}"),
    "eps-get": Screen("get eps"),
    "eps-describe": Screen("describe eps totals", "Status:"),
}


@pytest.fixture(scope="module")
def tenant(
    kube: Cluster, sluice: Operator, store: ClusterStore, java: ForeignClient
) -> Iterator[Tenant]:
    """Yield the guides' namespace, with the streams that they copy and without their targets."""
    assert sluice
    kube.kubectl(*("delete", "namespace", NAMESPACE, "--ignore-not-found", PATIENTLY))
    for stream, events in EVENTS.items():
        if java.create("shop", stream, segments=SEGMENTS):
            java.write("shop", stream, events=events, keys=1000)
        java.create("backup", stream)
        java.delete("backup", stream)
    for stream, events in MARKET.items():
        if java.create("market", stream):
            java.write("market", stream, events=events, keys=100)
    for scope in ("market-copy", "backup-copy"):
        for stream in names_in(java, scope) or ():
            java.delete(scope, stream)
    restrict(kube, NAMESPACE)
    yield Tenant(kube, NAMESPACE, store, print)
    kube.kubectl("delete", "namespace", NAMESPACE, PATIENTLY)


@pytest.fixture(scope="module")
def screens(tenant: Tenant) -> dict[str, str]:
    """Return the screens of a finished, a suspended, a failed and a running copy.

    The slow copies come last and are shown at once, while they are in the right state.
    """
    found = {}

    def look(*names: str) -> None:
        found.update({name: SCREENS[name].show(tenant) for name in names})

    store, orders = _main_example(tenant)
    tenant.apply(store, orders)
    look("sst-wait", "wait")
    _, market = _main_example(tenant, SCOPE_GUIDE)
    tenant.apply(market)
    look("sccp-wait")
    tenant.apply(_like(orders, "carts"))
    tenant.until_staged("carts", least=25)
    tenant.patch("scopy", "carts", {"spec": {"suspend": True}})
    tenant.until_reason("carts", "Suspended")
    tenant.until("no driver runs", lambda: not tenant.pods())
    tenant.apply(_like(orders, "clicks"))
    tenant.until_staged("clicks", least=25)
    tenant.until("the rate is known", lambda: tenant.status("clicks")["progress"].get("etaSeconds"))
    tenant.apply(_like(orders, "payments"))
    tenant.until_reason("payments", "SourceNotFound")
    look("get", "wide", "running", "sst-get", "sst-describe")
    # the copy of clicks still runs
    tenant.apply(_of_backup(market))
    look("failed", "done", "suspended", "events", "explain")
    tenant.until("backup is over", lambda: tenant.condition("backup", "Stalled", resource="sccp"))
    look("sccp-get", "sccp-wide", "sccp-failed")
    _apply_ephemerals(tenant)
    look("eps-wait", "eps-get", "eps-describe")
    if pages.UPDATE:
        for page in PAGES:
            pages.write(page, found)
    return found


@pytest.mark.exhaustive
def test_main_example_copies(tenant: Tenant, screens: dict[str, str], java: ForeignClient) -> None:
    """The guide's first copy works: its target equals the source, by foreign witnesses."""
    assert screens
    ours, theirs = (
        [report["sha256"] for report in tenant.hashes(f"{scope}/orders", segments=SEGMENTS)]
        for scope in ("backup", "shop")
    )
    assert ours == theirs
    assert java.read("backup", "orders").events == EVENTS["orders"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_screens_are_true(page: Path, screens: dict[str, str]) -> None:
    """The page shows the commands' output, except parts that differ from run to run."""
    assert pages.difference(page, screens) == ""


def test_every_screen_is_shown() -> None:
    """Each command has a screen, and no other screen exists. Applications have their own test."""
    shown = {name for page in PAGES for name, _ in pages.shown(page)}
    assert {name for name in shown if not name.startswith("app-")} == set(SCREENS)


@pytest.mark.exhaustive
def test_table_fits_a_terminal(screens: dict[str, str]) -> None:
    """Without `-o wide`, the table is at most 80 characters wide."""
    for name in ("get", "sccp-get", "eps-get"):
        assert max(map(len, screens[name].splitlines())) <= 80


# -- the guides


def _main_example(
    tenant: Tenant, guide: Path = COPY_GUIDE
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the guide's first example, for the store of the tests."""
    block = pages.yaml_blocks(guide)[0]
    store, copy = yaml.safe_load_all(re.sub(r"tcp://\S+", tenant.store.uri, block))
    return store, copy


def _like(copy: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the same copy for another stream, and slow."""
    sides = {side: copy["spec"][side] | {"stream": name} for side in ("source", "target")}
    return copy | {"metadata": {"name": name}, "spec": sides | {"limits": SLOW}}


def _of_backup(market: dict[str, Any]) -> dict[str, Any]:
    """Return a ScopeCopy of the other copies' targets, only one of which is whole."""
    sides = {
        "source": market["spec"]["source"] | {"scope": "backup"},
        "target": market["spec"]["target"] | {"scope": "backup-copy"},
    }
    streams = {"include": [{"type": "Exact", "value": name} for name in EVENTS]}
    return market | {"metadata": {"name": "backup"}, "spec": sides | {"streams": streams}}


def _apply_ephemerals(tenant: Tenant) -> None:
    """Apply the guide's EphemeralStream, one without its owner, and one of a foreign stream."""
    (totals,) = yaml.safe_load_all(pages.yaml_blocks(EPHEMERAL_GUIDE)[0])
    (owner,) = totals["spec"]["owners"]
    tenant.run("create", "deployment", owner["name"], "--image=localhost/none:1", "--replicas=0")
    tenant.apply(totals)
    _until_ephemeral(tenant, "totals", "Claimed")
    later = {"stream": "later", "owners": [owner | {"name": "later"}]}
    for name, spec in (("later", later), ("orders", {"stream": "orders"})):
        tenant.apply(totals | {"metadata": {"name": name}, "spec": totals["spec"] | spec})
    _until_ephemeral(tenant, "later", "WaitingForOwner")
    _until_ephemeral(tenant, "orders", "StreamExists")


def _until_ephemeral(tenant: Tenant, name: str, reason: str) -> None:
    """Wait until an EphemeralStream has this reason."""
    tenant.until(
        f"{name} says {reason}",
        lambda: tenant.condition(name, resource="eps").get("reason") == reason,
    )
