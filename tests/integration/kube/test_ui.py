"""`sluice ui` in a real browser, at a real API server, with an operator and a driver at work."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from playwright.sync_api import expect

from sluice.console.web.server import serve
from support.cluster.desk import Desk
from support.cluster.local_operator import LocalOperator, opened
from support.command.browser import browsing, chromium
from support.command.screens import UPDATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from playwright.sync_api import Browser, Page

    from localcluster import Cluster
    from localstore import ForeignClient, Standalone

# The first run installs the browser.
pytestmark = pytest.mark.timeout(1200)

SLUICE: Final = Path(sys.executable).with_name("sluice")
ATTACK: Final = (
    "<img src=x onerror='document.title=`owned`'><script>document.title='owned'</script>"
)
EVENTS: Final = 40_000
GOES_ON: Final = re.compile(r"Copying.*MB/.*MB.*B/s  ETA", re.DOTALL)
ENDED: Final = re.compile(r"True.*Copied.*100%", re.DOTALL)
SLOW: Final = {"bytesPerSecond": "1Mi"}
PICTURE: Final = Path(__file__).parents[3] / "docs" / "images" / "ui.png"
PATIENCE: Final = 60_000.0
"""Milliseconds that a page may take to show something."""


@pytest.fixture
def local_operator(
    kube: Cluster,
    definitions: list[str],
    standalone: Standalone,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LocalOperator]:
    """Gives an operator on this machine."""
    folder = tmp_path_factory.mktemp("sluice-test-ui")
    with opened(kube, folder, standalone.controller_uri) as made:
        yield made


@pytest.fixture(scope="module")
def browser(announce: Callable[[str], AbstractContextManager[None]]) -> Iterator[Browser]:
    """Gives a browser."""
    with announce("Chromium"):
        chromium()
    with browsing() as found:
        yield found


@contextmanager
def visiting(browser: Browser, address: str, **options: Any) -> Iterator[Page]:
    """Visit a page with a new browser session. The page must not complain about anything."""
    complaints: list[str] = []
    with browser.new_context(**options) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda told: complaints.append(told.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        yield page
    assert complaints == []


@contextmanager
def running(kubeconfig: Path, *words: str, **environment: str) -> Iterator[str]:
    """Run `sluice ui`, and give the address that it prints. Ctrl-C must end it cleanly."""
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


def row(page: Page, name: str) -> Any:
    """Return the row of a resource, by its name as a screen reader has it."""
    return page.get_by_role("row").filter(has=page.get_by_role("button", name=name, exact=True))


def test_a_page_shows_copies_go_on_end_and_fail(
    local_operator: LocalOperator,
    browser: Browser,
    foreign: ForeignClient,
    scope: str,
    tmp_path: Path,
) -> None:
    """A bar moves while bytes come. A failure's sentence is one click away, and markup is text."""
    tenant = local_operator.tenant
    foreign.create(scope, "orders", segments=2)
    foreign.write(scope, "orders", events=EVENTS, keys=8)
    desk = Desk(tenant, tmp_path)
    archived(desk, scope)
    tenant.apply(
        tenant.copy_resource("orders", f"{scope}/orders", f"{scope}/copied", limits=SLOW),
        tenant.copy_resource("lost", f"{scope}/nothing", f"{scope}/lost"),
    )
    driving = threading.Thread(target=desk.drive)
    driving.start()
    words = (f"--namespace={tenant.namespace}", "--no-browser")
    with (
        running(tenant.cluster.kubeconfig, *words) as address,
        visiting(browser, address, viewport={"width": 1000, "height": 460}) as page,
    ):
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
    driving.join()


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
    """Write an event about a resource, as each tenant can."""
    meta = body["metadata"]
    about = {"kind": body["kind"], "namespace": meta["namespace"]}
    about |= {"name": meta["name"], "uid": meta["uid"]}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "hostile"}, "type": "Normal"}
    event |= {"involvedObject": about, "reason": "Hostile", "message": ATTACK}
    tenant.apply(event | {"lastTimestamp": "2026-01-01T00:00:00Z"})


def test_a_browser_is_opened_with_an_address_that_works_once(
    kube: Cluster, definitions: list[str], browser: Browser, tmp_path: Path
) -> None:
    """The program's arguments, which other users may see, lead to the page the first time only."""
    told = tmp_path / "told"
    program = tmp_path / "browser"
    program.write_text(f'#!/bin/sh\necho "$1" > {told}.part\nmv {told}.part {told}\n')
    program.chmod(0o755)
    with running(kube.kubeconfig, "--all-namespaces", BROWSER=str(program)) as printed:
        until(told.exists)
        once = told.read_text().strip()
        assert printed.partition("#token=")[2] not in once
        for address in (once, printed):
            with visiting(browser, address) as page:
                expect(page.locator("#summary")).to_contain_text("resource", timeout=PATIENCE)
                page.reload()  # the tab keeps its session
                expect(page.locator("#summary")).to_contain_text("resource", timeout=PATIENCE)
        with browser.new_context() as context:
            late = context.new_page()
            late.goto(once)
            expect(late.get_by_role("alert")).to_contain_text("needs the address", timeout=PATIENCE)


def until(check: Callable[[], bool]) -> None:
    """Wait until a check holds."""
    deadline = time.monotonic() + PATIENCE / 1000
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.1)


# -- the page alone, with answers of the test


class Answers:
    """Answers of a server, which a test may change."""

    def __init__(self) -> None:
        self.rows = [self.row(number) for number in range(12)]
        self.text = "It goes on."

    @staticmethod
    def row(number: int, **other: Any) -> dict[str, Any]:
        """Return a row of the board."""
        common = {"id": f"uid-{number}", "name": f"team/streamcopy/copy-{number}"}
        common |= {
            "state": "pending",
            "ready": "Unknown",
            "reason": "Copying",
            "percent": 0,
            "copies": True,
        }
        common |= {"done": "0 B/100 MB", "rate": "", "backup": "2h00m ago", "age": "3m"}
        return common | other

    async def look(self) -> dict[str, Any]:
        """Return the board."""
        return {"summary": f"{len(self.rows)} resources", "notes": [], "rows": self.rows}

    async def describe(self, uid: str) -> dict[str, Any]:
        """Return the details of a resource."""
        text = self.text
        table = {"title": text, "heading": [text, "STATUS"], "rows": [[text, text], [text, uid]]}
        found = {"id": uid, "title": text, "message": text, "next": text}
        return found | {"facts": [text, text], "notes": [text], "tables": [table]}


@pytest.fixture
def answers() -> Answers:
    """Gives the answers."""
    return Answers()


@contextmanager
def serving(answers: Answers) -> Iterator[str]:
    """Serve these answers in a thread, and give the page's address."""
    found: list[str] = []
    begun, ended = threading.Event(), threading.Event()

    async def run() -> None:
        async with serve(answers.look, answers.describe) as links:
            found.append(links.page)
            begun.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    begun.wait()
    try:
        yield found[0]
    finally:
        ended.set()
        thread.join()


@pytest.fixture
def address(answers: Answers) -> Iterator[str]:
    """Gives the address of a page with these answers."""
    with serving(answers) as found:
        yield found


def test_no_text_becomes_markup(browser: Browser, answers: Answers, address: str) -> None:
    """Whichever field it stands in, and if it could leave an attribute or a string of JSON."""
    attack = f"'\"</td></script>{ATTACK}"
    answers.text = attack
    parts = ("name", "state", "ready", "reason", "done", "rate", "backup", "age")
    answers.rows = [Answers.row(1, **dict.fromkeys(parts, attack)), Answers.row(2)]
    with visiting(browser, address) as page:
        page.get_by_role("button", name=attack, exact=True).click()
        details = page.get_by_role("dialog", name=attack)
        expect(details.locator("#message")).to_have_text(attack)
        assert details.inner_text().count(ATTACK) == 11
        assert page.title() == "Sluice"
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 1


def test_the_policy_refuses_markup_even_of_the_page(browser: Browser, address: str) -> None:
    """If the script had a mistake, the browser would not follow it."""
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(address)
        for act in (
            "document.body.innerHTML = text",
            "document.body.setAttribute('onclick', text)",
        ):
            tried = f"text => {{ try {{ {act}; }} catch (error) {{ return error.name; }} }}"
            assert page.evaluate(tried, ATTACK) == "TypeError"
        assert page.title() == "Sluice"


@pytest.mark.parametrize("width", [375, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_suits_phones_and_screens_by_day_and_night(
    browser: Browser, answers: Answers, address: str, width: int, scheme: Any
) -> None:
    """Nothing is cut at the side, nothing jumps when numbers come, and texts have contrast."""
    long = "team/streamarchive/" + "x" * 63
    answers.rows[3] = Answers.row(3, name=long, reason="WaitingForExecutors")
    screen = {"width": width, "height": 800}
    with visiting(browser, address, viewport=screen, color_scheme=scheme) as page:
        expect(page.get_by_role("button", name=long)).to_be_visible()
        before = page.evaluate(PLACES)
        answers.rows = [
            Answers.row(
                number, percent=number * 8, done="43.2 MB/100 MB", rate="7.1 MB/s  ETA 8m15s"
            )
            | {"name": answers.rows[number]["name"], "reason": answers.rows[number]["reason"]}
            for number in range(12)
        ]
        expect(row(page, "team/streamcopy/copy-11")).to_contain_text("88%", timeout=PATIENCE)
        assert page.evaluate(PLACES) == before
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CONTRAST) >= 4.5
        page.get_by_role("button", name=long).click()
        expect(page.get_by_role("dialog")).to_contain_text("It goes on.")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


PLACES: Final = (
    "[...document.querySelectorAll('#board tr')].map(r => r.getBoundingClientRect().top)"
)
CONTRAST: Final = """() => {
  const light = color => {
    const parts = color.match(/[0-9.]+/g).slice(0, 3).map(n => n / 255);
    const [r, g, b] = parts.map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const back = light(getComputedStyle(document.body).backgroundColor);
  const ratios = [...document.querySelectorAll('header *, main *')].map(node => {
    const text = light(getComputedStyle(node).color);
    return (Math.max(back, text) + 0.05) / (Math.min(back, text) + 0.05);
  });
  return Math.min(...ratios);
}"""
"""The least contrast of a text to the page's ground, as WCAG 2 counts it; 4.5 is its level AA."""


def test_it_works_by_keyboard_and_tells_a_screen_reader_what_is_what(
    browser: Browser, answers: Answers, address: str
) -> None:
    """Headings of columns and rows, names of bars and dialogs, and the focus comes back."""
    answers.rows[0] |= {"state": "ready", "ready": "True", "percent": 100}
    with visiting(browser, address) as page:
        board = page.get_by_role("table", name="Resources of Sluice.")
        expect(board.get_by_role("row")).to_have_count(13)
        heads = board.get_by_role("columnheader")
        assert heads.all_inner_texts()[:4] == ["Resource", "Ready", "Reason", "Progress"]
        expect(board.get_by_role("rowheader")).to_have_count(12)
        hide = page.get_by_role("checkbox", name="Hide resources that are ready")
        hide.focus()
        page.keyboard.press("Space")
        expect(board.get_by_role("row")).to_have_count(12)
        page.keyboard.press("Tab")
        button = page.get_by_role("button", name="team/streamcopy/copy-1", exact=True)
        expect(button).to_be_focused()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="It goes on.")
        expect(dialog.get_by_role("region").get_by_role("columnheader")).to_have_count(2)
        expect(dialog.get_by_role("button", name="Close")).to_be_focused()
        page.keyboard.press("Escape")
        expect(button).to_be_focused()


def test_a_server_that_has_ended_is_told(answers: Answers, browser: Browser) -> None:
    """The last look stays, and the page says what to do."""
    with browser.new_context() as context:
        page = context.new_page()
        with serving(answers) as address:
            page.goto(address)
            last = page.get_by_role("button", name="team/streamcopy/copy-11")
            expect(last).to_be_visible()
        told = page.get_by_role("alert")
        expect(told).to_contain_text("sluice ui does not answer", timeout=PATIENCE)
        expect(last).to_be_visible()
