"""The demo: a real Pravega, a million events from its own Java client, one exact copy.

Everything it starts ends with it, so it can be run again and again.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import segment_hash
from localstore import ForeignClient, Standalone

ROOT = Path(__file__).parents[1]
SLUICE = Path(sys.executable).with_name("sluice")
SOURCE = ("in", "events")
TARGET = ("out", "events")
EVENTS = 1_000_000
SEGMENTS = 4
KEYS = 1_000

console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)


@contextmanager
def stage(text: str) -> Iterator[None]:
    """Say what begins, and how long it took."""
    console.print(f"[bold]==>[/] {text}")
    began = time.monotonic()
    yield
    console.print(f"    {time.monotonic() - began:.1f} s")


def manifest(uri: str) -> Path:
    """The example, with the address of the store that was just started."""
    text = (ROOT / "examples" / "streamcopy.yaml").read_text()
    path = ROOT / "build" / "demo" / "streamcopy.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(re.sub(r"tcp://\S+", uri, text))
    return path


def sluice(*arguments: str | Path) -> str:
    """Run the command, its messages on the terminal; what it printed on standard output."""
    console.print(f"    $ sluice {' '.join(str(a) for a in arguments)}".replace(f"{ROOT}/", ""))
    return subprocess.run(
        [SLUICE, *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def main() -> int:
    """Run the demo; 0 if the copy is exact."""
    began = time.monotonic()
    with Standalone() as store, ForeignClient(store.controller_uri) as java:
        console.print(f"[bold]==>[/] Pravega serves at {store.controller_uri}")
        with stage(f"Pravega's Java client writes {EVENTS:,} events to {SEGMENTS} segments"):
            java.create(*SOURCE, segments=SEGMENTS)
            java.create_scope(TARGET[0])
            java.write(*SOURCE, events=EVENTS, keys=KEYS)
        file = manifest(store.controller_uri)
        with stage("Sluice copies"):
            (report,) = json.loads(sluice("run", "-f", file, "-o", "json"))
        with stage("The Java client reads both streams, order checked for each key"):
            before = java.read(*SOURCE)
            after = java.read(*TARGET)
        with stage("A stand-alone script hashes every segment of both"):
            pairs = [
                tuple(
                    segment_hash.segment_report(*store.segment_store, *stream, segment)
                    for stream in (SOURCE, TARGET)
                )
                for segment in range(SEGMENTS)
            ]
        with stage("The same copy again"):
            sluice("run", "-f", file)
    show(report, pairs)
    exact = (
        after.clean
        and (before.events, before.digest) == (after.events, after.digest) == (EVENTS, after.digest)
        and all(source["sha256"] == target["sha256"] for source, target in pairs)
    )
    console.print(
        f"Read back: {after.events:,} events of {after.keys:,} keys, {after.out_of_order} out of "
        f"order, {after.duplicates} twice, {after.missing} missing."
    )
    verdict = "[bold green]The copy is exact" if exact else "[bold red]The copy is NOT exact"
    console.print(f"{verdict}.[/] {time.monotonic() - began:.0f} s in all.")
    return 0 if exact else 1


def show(report: dict[str, Any], pairs: list[tuple[dict[str, Any], ...]]) -> None:
    """The table at the end."""
    table = Table(title="What the stand-alone script found", title_justify="left")
    table.add_column("Segment")
    for column in ("Bytes", "Events"):
        table.add_column(column, justify="right")
    table.add_column("SHA-256 of the source")
    table.add_column("of the target")
    for source, target in pairs:
        table.add_row(
            str(source["id"]),
            f"{source['length']:,}",
            f"{target['events']:,}",
            str(source["sha256"])[:20],
            str(target["sha256"])[:20],
        )
    console.print(table)
    size, seconds = report["bytes"], report["seconds"]
    rate = size / seconds / 1e6
    console.print(f"Sluice: {size:,} bytes in {seconds:.2f} s ({rate:.0f} MB/s), verified. Digest:")
    console.print(f"  {report['digest']}")


if __name__ == "__main__":
    sys.exit(main())
