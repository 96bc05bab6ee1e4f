"""`sluice serve` at a real API server and over a real store, in a real browser.

The test appends rows as a query does. `e2e/operator/test_queries.py` has a whole query.
"""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest
from playwright.sync_api import expect

from pageparts import place
from sluice.config import Settings
from sluice.core.values.model import StoreAddress, StreamName
from sluice.stores.connect import connect
from support.command.browser import ATTACK, PATIENCE, visiting
from support.command.screens import UPDATE
from support.command.warm import SLUICE
from support.store.counts import manifest
from support.store.rows import QUERY_ID, ResultRows
from support.until import PATIENT, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Locator, Page

    from localcluster import Cluster
    from localstore import Standalone
    from sluice.stores.base import Store

# The first run installs the browser.
pytestmark = pytest.mark.timeout(1200)

PICTURE: Final = Path(__file__).parents[4] / "docs" / "images" / "query.png"
SIZE: Final = {"width": 1100, "height": 760}
LISTED: Final = 100
"""The number of rows that the page lists."""

COLUMNS: Final = "start TIMESTAMP,k STRING,n BIGINT,total BIGINT"
BEGIN: Final = datetime(2026, 5, 4, 12, tzinfo=UTC)
TOKEN: Final = "token-of-this-test"  # noqa: S105 - of this test


def window(minute: int, keys: int = 6) -> list[dict[str, Any]]:
    """Return the rows of a window."""
    start = (BEGIN + timedelta(minutes=minute)).isoformat(timespec="microseconds")
    return [
        {
            "start": start.replace("+00:00", "Z"),
            "k": f"key-{key}",
            "n": 100 + 17 * key + (minute * (key + 3)) % 40,
            "total": minute * key,
        }
        for key in range(keys)
    ]


@pytest.fixture
def store(standalone: Standalone) -> Iterator[Store]:
    """Yield the shared store."""
    made = connect(StoreAddress(uri=standalone.controller_uri), Settings(timeouts=PATIENT))
    yield made
    made.close()


class Query:
    """A query of a namespace without an operator.

    Args:
        kube: the cluster.
        namespace: the namespace.
    """

    def __init__(self, kube: Cluster, namespace: str) -> None:
        self._kube = kube
        self.namespace = namespace

    def apply(self, text: str) -> None:
        """Apply the query and its StreamStore."""
        self._kube.kubectl("apply", f"--namespace={self.namespace}", "--filename=-", stdin=text)

    def tell(self, reason: str, message: str, *, status: str = "True") -> None:
        """Write a status as the operator would."""
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        ready = {"type": "Ready", "status": status, "reason": reason, "message": message}
        ready |= {"lastTransitionTime": now, "observedGeneration": 1}
        progress = {"batch": 7, "rows": 120, "lagBytes": 2048, "lag": "2 KB", "time": now}
        progress |= {"watermark": "2026-05-04T12:19:00Z"}
        version = {"number": 3, "hash": "0" * 64, "columns": COLUMNS}
        told = {"conditions": [ready], "progress": progress, "version": version}
        told |= {"queryID": QUERY_ID}
        words = ("patch", "streamquery", "counts", f"--namespace={self.namespace}", "--type=merge")
        patch = f"--patch={json.dumps({'status': told})}"
        self._kube.kubectl(*words, "--subresource=status", patch)


@pytest.fixture
def query(
    kube: Cluster, definitions: list[str], outside: str, standalone: Standalone, scope: str
) -> Query:
    """Return an applied query, whose status says that it runs."""
    made = Query(kube, outside)
    clicks = StreamName(scope=scope, stream="clicks")
    made.apply(manifest(standalone.controller_uri, clicks, mode="Continuous"))
    made.tell("Running", "The query runs.")
    return made


@pytest.fixture
def rows(store: Store, standalone: Standalone, scope: str) -> Iterator[ResultRows]:
    """Yield the query's result, with twenty windows."""
    sink = StreamName(scope=scope, stream="counts")
    with ResultRows(store, standalone.controller_uri, sink) as made:
        for minute in range(20):
            made.add(window(minute))
        yield made


@contextmanager
def gateway(kube: Cluster, *words: str, stop: int = signal.SIGTERM) -> Iterator[str]:
    """Run `sluice serve`, and yield its address. SIGTERM must end it cleanly."""
    with subprocess.Popen(
        [SLUICE, "serve", *words],
        env=os.environ | {"KUBECONFIG": str(kube.kubeconfig)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            assert address
            yield address
        finally:
            process.send_signal(stop)
        assert process.wait(timeout=30) == (0 if stop == signal.SIGTERM else -stop)


def free_port() -> int:
    """Return an unused port."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    """Return a file with the token."""
    file = tmp_path / "token"
    file.write_text(TOKEN)
    return file


def link(page: Page) -> Locator:
    """Return the element that says whether the page is live."""
    return page.locator("#link")


def test_a_page_is_live_and_survives_its_gateway(
    kube: Cluster, browser: Browser, query: Query, rows: ResultRows, token_file: Path
) -> None:
    """Rows appear as they are written. Without a gateway, the page tells the age of its data."""
    place()
    port = free_port()
    words = (f"--namespace={query.namespace}", f"--port={port}", f"--token-file={token_file}")
    url = f"http://127.0.0.1:{port}/q/{query.namespace}/counts#token={TOKEN}"
    with ExitStack() as stack:
        with gateway(kube, *words, stop=signal.SIGKILL) as address:
            assert address == f"http://127.0.0.1:{port}/"
            # The browser logs refused connections while no gateway runs.
            page = stack.enter_context(visiting(browser, url, borne="net::ERR_", viewport=SIZE))
            expect(link(page)).to_have_text("Live", timeout=PATIENCE)
            expect(page.locator("#state")).to_contain_text("Running")
            expect(page.locator("#legend li")).to_have_count(6, timeout=PATIENCE)
            expect(page.locator("#plot canvas")).to_be_visible()
            assert "#" not in page.url
            latest = page.get_by_role("region", name="Last rows").get_by_role("row")
            expect(latest).to_have_count(1 + LISTED)
            rows.add(window(20))
            expect(latest.nth(1)).to_contain_text("12:20", timeout=PATIENCE)
            if UPDATE:
                page.screenshot(path=PICTURE, full_page=True)
            rows.add([window(21)[0] | {"k": ATTACK}])
            expect(latest.nth(1)).to_contain_text(ATTACK, timeout=PATIENCE)
        expect(link(page)).to_have_text("Reconnecting ...", timeout=PATIENCE)
        expect(page.locator("#old")).to_contain_text(re.compile(r"The data are of .* s ago"))
        expect(latest.nth(1)).to_contain_text(ATTACK)
        rows.add([window(22)[0] | {"k": "written meanwhile"}])
        with gateway(kube, *words):
            expect(link(page)).to_have_text("Live", timeout=PATIENCE)
            expect(latest.nth(1)).to_contain_text("written meanwhile", timeout=PATIENCE)
            query.tell("MalformedEvents", "An event does not fit.", status="False")
            expect(page.locator("#trouble")).to_contain_text("An event does not fit")
            assert page.locator("img").count() == 0
            with visiting(browser, f"{address}#token={TOKEN}") as board:
                board.get_by_role("link", name="Live results of streamquery/counts").click()
                expect(link(board)).to_have_text("Live", timeout=PATIENCE)


def test_a_stranger_is_asked_for_a_token(
    kube: Cluster, browser: Browser, query: Query, token_file: Path
) -> None:
    """A wrong token is refused.

    With the right one the page is live, and says that no row came yet.
    """
    words = (f"--namespace={query.namespace}", f"--token-file={token_file}")
    with (
        gateway(kube, *words) as address,
        visiting(browser, f"{address}q/{query.namespace}/counts", borne="401") as page,
    ):
        field = page.get_by_label("Token")
        field.fill("wrong")
        field.press("Enter")
        expect(field).to_have_value("", timeout=PATIENCE)
        field.fill(TOKEN)
        field.press("Enter")
        expect(link(page)).to_have_text("Live", timeout=PATIENCE)
        expect(page.locator("#empty")).to_contain_text("No row yet", timeout=PATIENCE)


@pytest.mark.exhaustive
def test_all_rows_are_downloaded(
    kube: Cluster, query: Query, rows: ResultRows, token_file: Path
) -> None:
    """All rows can be downloaded as JSON, and as Arrow with the types of the result."""
    words = (f"--namespace={query.namespace}", f"--token-file={token_file}")
    with gateway(kube, *words) as address:
        path = f"{address}api/queries/{query.namespace}/counts/rows?format="

        def downloaded(form: str) -> bytes:
            asked = Request(f"{path}{form}", headers={"Authorization": f"Bearer {TOKEN}"})  # noqa: S310 - our own server
            with urlopen(asked, timeout=60) as answer:  # noqa: S310 - as above
                assert answer.headers["Content-Disposition"].startswith("attachment")
                data: bytes = answer.read()
                return data

        def ordered(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return sorted(found, key=lambda row: (row["start"], row["k"]))

        lines = downloaded("json").decode().splitlines()
        assert ordered([json.loads(line) for line in lines]) == ordered(rows.rows)
        with pa.ipc.open_stream(io.BytesIO(downloaded("arrow"))) as reader:
            table = reader.read_all()
        assert str(table.schema.field("start").type) == "timestamp[us, tz=UTC]"
        assert table.num_rows == len(rows.rows)
        assert sum(table["n"].to_pylist()) == sum(row["n"] for row in rows.rows)


def test_kubernetes_decides_who_sees_rows(kube: Cluster, query: Query, rows: ResultRows) -> None:
    """An account sees the rows of a query once it has the right, and those of no other query."""
    assert rows.rows
    place_of = f"--namespace={query.namespace}"
    kube.kubectl("create", "serviceaccount", "viewer", place_of)
    token = kube.kubectl("create", "token", "viewer", place_of).strip()
    with gateway(kube, place_of, "--access=kubernetes") as address:
        path = f"{address}api/queries/{query.namespace}/"

        def status(given: str, name: str = "counts") -> int:
            asked = Request(f"{path}{name}/rows", headers={"Authorization": f"Bearer {given}"})  # noqa: S310 - our own server
            try:
                with urlopen(asked, timeout=60) as answer:  # noqa: S310 - as above
                    found: int = answer.status
                    return found
            except HTTPError as error:
                return error.code

        assert status("wrong") == 401
        assert status(token) == 403
        see = ("--verb=get", "--resource=streamqueries.sluice.dev,streamqueries.sluice.dev/results")
        kube.kubectl("create", "role", "viewer", *see, "--resource-name=counts", place_of)
        kube.kubectl(
            "create", "rolebinding", "viewer", "--role=viewer",
            f"--serviceaccount={query.namespace}:viewer", place_of,
        )  # fmt: skip
        until("the right counts", lambda: status(token) == 200)
        assert status(token, "another") == 403
