"""`sluice ui` in a real browser, at a real API server, with an operator and a driver at work."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from playwright.sync_api import expect

from support.command.browser import ATTACK, PATIENCE, row, visiting
from support.command.screens import UPDATE
from support.command.warm import SLUICE
from support.until import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

    from localcluster import Cluster
    from localstore import ForeignClient
    from support.tenants.desk import Desk

# The first run installs the browser.
pytestmark = pytest.mark.timeout(1200)

EVENTS: Final = 40_000
GOES_ON: Final = re.compile(r"Copying.*MB/.*MB.*B/s  ETA", re.DOTALL)
ENDED: Final = re.compile(r"True.*Copied.*100%", re.DOTALL)
SLOW: Final = {"bytesPerSecond": "300Ki"}
"""A rate so low that the page shows the copy for several looks, even on a busy machine."""
PICTURE: Final = Path(__file__).parents[4] / "docs" / "images" / "ui.png"


@contextmanager
def running(kubeconfig: Path, *words: str, **environment: str) -> Iterator[str]:
    """Run `sluice ui`, and yield the address that it prints. Ctrl-C must end it cleanly."""
    with subprocess.Popen(
        [SLUICE, "ui", *words],
        env=os.environ | {"KUBECONFIG": str(kubeconfig)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)
            told = process.stderr.read()
        assert process.wait(timeout=30) == 0
        assert told.endswith("for you alone, until Ctrl-C:\n")


@pytest.mark.exhaustive
def test_a_page_shows_copies_go_on_end_and_fail(
    desk: Desk, browser: Browser, foreign: ForeignClient, scope: str
) -> None:
    """A page shows progress as a moving bar. A failure is one click away. Markup is text."""
    tenant = desk.tenant
    foreign.create(scope, "orders", segments=2)
    foreign.write(scope, "orders", events=EVENTS, keys=8)
    archived(desk, scope)
    tenant.apply(
        tenant.copy_resource("orders", f"{scope}/orders", f"{scope}/copied", limits=SLOW),
        tenant.copy_resource("lost", f"{scope}/nothing", f"{scope}/lost"),
    )
    words = (f"--namespace={tenant.namespace}", "--no-browser")
    with (
        ThreadPoolExecutor(1) as threads,
        running(tenant.cluster.kubeconfig, *words) as address,
        visiting(browser, address, viewport={"width": 1000, "height": 460}) as page,
    ):
        driver = threads.submit(desk.drive)
        assert page.url.endswith("/")  # the token is gone from the address
        moving = row(page, "streamcopy/orders")
        bar = moving.get_by_role("progressbar", name="Progress of streamcopy/orders")
        expect(moving).to_contain_text(GOES_ON, timeout=PATIENCE)
        first = bar.evaluate("bar => bar.value")
        page.wait_for_function(
            "first => [...document.querySelectorAll('progress')].some(b => b.value > first)",
            arg=first,
        )
        lost = row(page, "streamcopy/lost")
        expect(lost).to_contain_text("SourceNotFound", timeout=PATIENCE)
        backup = row(page, "streamarchive/nightly").get_by_role("cell").nth(3)
        expect(backup).to_have_text(re.compile(r"^\d+m?\d*s ago$"))
        if UPDATE:
            page.screenshot(path=PICTURE)
        expect(moving).to_contain_text(ENDED, timeout=PATIENCE)

        hostile(tenant.get("scopy", "lost"), tenant)
        page.get_by_role("button", name="streamcopy/lost").click()
        details = page.get_by_role("dialog", name=f"StreamCopy {tenant.namespace}/lost")
        said = tenant.condition("lost")["message"]
        expect(details.locator("#message")).to_have_text(said, timeout=PATIENCE)
        expect(details).to_contain_text("Then: sluice retry streamcopy/lost.")
        stalled = details.get_by_role("region", name="Conditions").get_by_role("row")
        expect(stalled.filter(has_text="Stalled")).to_contain_text("SourceNotFound")
        event = details.get_by_role("region", name="Events").get_by_role("row")
        expect(event.filter(has_text="Hostile")).to_contain_text(ATTACK, timeout=PATIENCE)
        assert page.title() == "Sluice"
        assert page.locator("img").count() == 0
        driver.result()


def archived(desk: Desk, scope: str) -> None:
    """Archive the stream to a volume."""
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "shelf"}}
    room = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    desk.tenant.apply(claim | {"spec": room | {"storageClassName": "none"}})
    desk.resource("StreamStore", "shelf", {"volume": {"claimName": "shelf"}})
    source = {"storeRef": {"name": "store"}, "scope": scope, "stream": "orders"}
    destination = {"storeRef": {"name": "shelf"}, "path": "orders"}
    desk.resource("StreamArchive", "nightly", {"source": source, "destination": destination})
    desk.drive()
    desk.until_reason("sarc", "nightly", "Archived")


def hostile(body: Any, tenant: Any) -> None:
    """Write an event about a resource, as any tenant can."""
    meta = body["metadata"]
    about = {"kind": body["kind"], "namespace": meta["namespace"]}
    about |= {"name": meta["name"], "uid": meta["uid"]}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "hostile"}, "type": "Normal"}
    event |= {"involvedObject": about, "reason": "Hostile", "message": ATTACK}
    tenant.apply(event | {"lastTimestamp": "2026-01-01T00:00:00Z"})


def test_a_browser_is_opened_with_an_address_that_works_once(
    kube: Cluster, definitions: list[str], browser: Browser, tmp_path: Path
) -> None:
    """The address works only once, since other users may see the program's arguments."""
    told = tmp_path / "told"
    program = tmp_path / "browser"
    program.write_text(f'#!/bin/sh\necho "$1" > {told}.part\nmv {told}.part {told}\n')
    program.chmod(0o755)
    with running(kube.kubeconfig, "--all-namespaces", BROWSER=str(program)) as printed:
        until("a browser is opened", told.exists)
        once = told.read_text().strip()
        assert printed.partition("#token=")[2] not in once
        for address in (once, printed):
            with visiting(browser, address) as page:
                expect(page.locator("#summary")).to_contain_text("resource", timeout=PATIENCE)
                page.reload()  # the tab's session stays
                expect(page.locator("#summary")).to_contain_text("resource", timeout=PATIENCE)
        with browser.new_context() as context:
            late = context.new_page()
            late.goto(once)
            expect(late.get_by_role("alert")).to_contain_text("needs the address", timeout=PATIENCE)
