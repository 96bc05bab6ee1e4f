"""A browser for tests of pages: Chromium without a window, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from playwright.sync_api import sync_playwright

from localcluster import LocalClusterError
from localcluster.packages import install, is_debian
from localstore.cache import cache_root, locked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Locator, Page

PATIENCE: Final = 60_000.0
"""Milliseconds that a page may take to show something."""

ATTACK: Final = (
    "<img src=x onerror='document.title=`owned`'><script>document.title='owned'</script>"
)
"""A text that changes a page's title if the page takes it for markup."""

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_PACKAGES: Final = ["chromium", "fonts-dejavu-core"]

_QUIET: Final = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
"""Options without which Chromium looks for hosts of its maker."""


def chromium() -> str:
    """Return the path of a Chromium. If there is none, install Debian's.

    Raises:
        LocalClusterError: there is none, and it cannot be installed.
    """
    with locked(cache_root() / "chromium.lock"):
        found = _installed()
        if found is None and os.geteuid() == 0 and is_debian():
            install(_PACKAGES)
            found = _installed()
    if found is None:
        raise LocalClusterError(f"no browser found: install one of {', '.join(_NAMES)}")
    return found


def _installed() -> str | None:
    return next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def browsing() -> Iterator[Browser]:
    """Yield a browser. Meanwhile this thread can run no other event loop."""
    options = [*_QUIET, "--no-sandbox"] if os.geteuid() == 0 else [*_QUIET]  # root has no sandbox
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium(), args=options) as browser,
    ):
        yield browser


@contextmanager
def visiting(browser: Browser, address: str, *, borne: str = "", **options: Any) -> Iterator[Page]:
    """Visit a page with a new browser session. Fail if the page complains about anything.

    Args:
        browser: the browser.
        address: the page's address.
        borne: a text that complaints may have.
        options: of the session.
    """
    complaints: list[str] = []
    with browser.new_context(**options) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda told: complaints.append(told.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        yield page
    assert [one for one in complaints if not borne or borne not in one] == []


def row(page: Page, name: str) -> Locator:
    """Return the row of a resource, by its name as a screen reader has it."""
    return page.get_by_role("row").filter(has=page.get_by_role("button", name=name, exact=True))
