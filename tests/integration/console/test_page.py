"""The page of `sluice ui` in a real browser, with the test's answers in place of a cluster's."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest
from playwright.sync_api import expect

from sluice.console.web.server import serve
from support.command.browser import ATTACK, PATIENCE, row, visiting
from support.search import few

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

# The first run installs the browser.
pytestmark = pytest.mark.timeout(1200)


class Answers:
    """Answers of a server, which a test may change."""

    def __init__(self) -> None:
        self.rows = [self.row(number) for number in range(12)]
        self.text = "It goes on."

    @staticmethod
    def row(number: int, **other: Any) -> dict[str, Any]:
        """Return a row of the board."""
        common: dict[str, Any] = {"id": f"uid-{number}", "name": f"team/streamcopy/copy-{number}"}
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
    """Return the answers."""
    return Answers()


@contextmanager
def serving(answers: Answers) -> Iterator[str]:
    """Serve these answers in a thread, and yield the page's address."""
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
    """Yield the address of a page with these answers."""
    with serving(answers) as found:
        yield found


def test_no_text_becomes_markup(browser: Browser, answers: Answers, address: str) -> None:
    """Text of any field stays text, even if it could leave an attribute or a JSON string."""
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
    """The browser's policy would refuse markup even after a mistake in the script."""
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


@pytest.mark.parametrize(
    ("width", "scheme"),
    few([(375, "light"), (1400, "dark"), (375, "dark"), (1400, "light")], 2),
)
def test_it_suits_phones_and_screens_by_day_and_night(
    browser: Browser, answers: Answers, address: str, width: int, scheme: Any
) -> None:
    """On phones and screens no text is cut, no layout jumps, and texts have contrast."""
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
    """Keyboard and screen reader get headings, names of bars and dialogs, and the focus back."""
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
    """When the server has ended, the last look stays and the page names the remedy."""
    with browser.new_context() as context:
        page = context.new_page()
        with serving(answers) as address:
            page.goto(address)
            last = page.get_by_role("button", name="team/streamcopy/copy-11")
            expect(last).to_be_visible()
        told = page.get_by_role("alert")
        expect(told).to_contain_text("sluice ui does not answer", timeout=PATIENCE)
        expect(last).to_be_visible()
