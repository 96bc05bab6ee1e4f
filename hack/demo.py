"""Run the demo: Kubernetes, a real Pravega in it, Sluice by Helm, a StreamCopy of a million events.

The cluster, the store and the operator stay up, so that you can look around. Another run uses them
again with new streams.

It uses only the standard library, as localcluster and localstore do. So it need not wait for 400 MB
of Python packages.
"""

import json
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import segment_hash
from localcluster import choose
from localcluster.cluster import Cluster
from localcluster.images.image import Image
from localcluster.images.store_image import store_image
from localcluster.release import NAMESPACE, install, restrict, sluice_image
from localcluster.store import ClusterStore
from localstore import ForeignClient
from localstore.cache import cache_root
from localstore.foreign_jvm import compiled_client
from localstore.jars import ensure_jars

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "streamcopy.yaml"
DEMO = "demo"
COPY = "events"
SOURCE = ("in", "events")
TARGET = ("out", "events")
EVENTS = 1_000_000
SEGMENTS = 4
KEYS = 1_000
PATIENCE = 300.0
STAGES = 5

BOLD, DIM, RED, GREEN = "1", "2", "1;31", "1;32"


def styled(style: str, text: str) -> str:
    """Return a text in a style, for a terminal; elsewhere as it is."""
    return f"\033[{style}m{text}\033[0m" if sys.stdout.isatty() else text


def say(text: str) -> None:
    """Print a line of details."""
    # As one string, because several threads print.
    print(f"    {text}\n", end="", flush=True)


class Stages:
    """The consecutive stages of the demo.

    Args:
        file: the file that keeps the shortest seconds of each stage on this machine.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._begun = 0
        self._least = [0.0] * STAGES
        with suppress(FileNotFoundError):
            known = json.loads(file.read_text(encoding="utf-8"))
            if len(known) == STAGES:  # otherwise a demo with other stages recorded them
                self._least = known

    @contextmanager
    def stage(self, text: str) -> Iterator[None]:
        """Print the stage's title, the estimated time left if known, and the seconds it took."""
        left = sum(self._least[self._begun :])
        known = styled(DIM, f" (about {left:.0f} s left)") if left else ""
        number = self._begun
        self._begun += 1
        print(f"{styled(BOLD, f'==> {self._begun}/{STAGES}')} {text}{known}", flush=True)
        began = time.monotonic()
        yield
        seconds = time.monotonic() - began
        say(f"{seconds:.1f} s")
        self._least[number] = min(seconds, self._least[number] or seconds)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(self._least), encoding="utf-8")


def shown(cluster: Cluster, *arguments: str) -> str:
    """Run kubectl as a user would, and print the command and its output."""
    say(styled(DIM, f"$ kubectl {' '.join(arguments)}"))
    output = cluster.kubectl(*arguments)
    for line in output.splitlines():
        say(line)
    return output


def remove(java: ForeignClient, scope: str, stream: str) -> None:
    """Ensure that a scope exists and that it has no such stream."""
    java.create_scope(scope)
    java.create(scope, stream)
    java.seal(scope, stream)
    java.delete(scope, stream)


def follow(cluster: Cluster) -> bool:
    """Print the copy's line whenever it changes, until it is done. Tell whether it is ready."""
    say(styled(DIM, f"$ kubectl --namespace {DEMO} get scopy {COPY} --watch"))
    get = (f"--namespace={DEMO}", "get", "scopy", COPY)
    last = ""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        table = cluster.kubectl(*get).splitlines()
        # Drop the age, which always changes.
        line = table[-1].rsplit(maxsplit=1)[0] if table else ""
        if line != last:
            for text in table if not last else table[-1:]:
                say(text)
        last = line
        body = json.loads(cluster.kubectl(*get, "--output=json"))
        conditions = body.get("status", {}).get("conditions", [])  # none before the first look
        ready = next((c["status"] for c in conditions if c["type"] == "Ready"), "Unknown")
        if ready != "Unknown":
            return bool(ready == "True")
        time.sleep(0.5)
    return False


def fetch() -> None:
    """Fetch the parts of the store's image."""
    ensure_jars(say)
    compiled_client()


def main() -> int:
    """Run the demo. Return 0 if the copy is exact."""
    began = time.monotonic()
    cluster = choose()
    stage = Stages(cache_root() / "demo-seconds.json").stage
    with stage(f"Kubernetes: {cluster.what}"), ThreadPoolExecutor(1) as worker:
        fetched = worker.submit(fetch)  # mostly waits, so the compiler has the processors meanwhile

        def pravega() -> Image:
            fetched.result()
            return store_image()

        image, _ = cluster.up(say, [sluice_image, pravega])
    store = ClusterStore(cluster)
    with stage(f"Pravega, as a Deployment, and Sluice, by Helm, in namespace {NAMESPACE}"):
        installed = ThreadPoolExecutor(1).submit(install, cluster, image, say=say)
        uri = store.up(say)
    with store.foreign() as java:
        with stage(f"Pravega's Java client writes {EVENTS:,} events to {SEGMENTS} segments"):
            cluster.kubectl("delete", "namespace", DEMO, "--ignore-not-found", timeout=120)
            for stream in (SOURCE, TARGET):
                remove(java, *stream)
            java.create(*SOURCE, segments=SEGMENTS)
            java.write(*SOURCE, events=EVENTS, keys=KEYS)
            installed.result()
        with stage(f"kubectl apply of {EXAMPLE.relative_to(ROOT)}"):
            restrict(cluster, DEMO)
            file = ROOT / "build" / "demo" / "streamcopy.yaml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(re.sub(r"tcp://\S+", uri, EXAMPLE.read_text()))
            shown(cluster, f"--namespace={DEMO}", "apply", f"--filename={file.relative_to(ROOT)}")
            done = follow(cluster)
            shown(cluster, f"--namespace={DEMO}", "events", "--for=streamcopy/events")
        if not done:
            print(styled(RED, "The copy did not become ready."))
            return 1
        with (
            stage("The Java client reads both streams, and a stand-alone script hashes them"),
            store.doors() as (_, server),
        ):
            segments = {stream: java.info(*stream).segments for stream in (SOURCE, TARGET)}
            read = ThreadPoolExecutor(1).submit(lambda: (java.read(*SOURCE), java.read(*TARGET)))
            hashes = [
                [segment_hash.segment_report(*server, *stream, segment.id) for segment in known]
                for stream, known in segments.items()
            ]
            before, after = read.result()
            pairs = list(zip(*hashes, strict=True))
    show(pairs)
    exact = (
        after.clean
        and (before.events, before.digest) == (after.events, after.digest) == (EVENTS, after.digest)
        and all(source["sha256"] == target["sha256"] for source, target in pairs)
    )
    print(
        f"Read back: {after.events:,} events of {after.keys:,} keys, {after.out_of_order} out of "
        f"order, {after.duplicates} twice, {after.missing} missing."
    )
    style, verdict = (GREEN, "is exact") if exact else (RED, "is NOT exact")
    print(f"{styled(style, f'The copy {verdict}.')} {time.monotonic() - began:.0f} s in all.")
    print(
        f"Look around:  export KUBECONFIG={cluster.kubeconfig}; kubectl -n {DEMO} describe scopy "
        f"{COPY}\nStop it all:  make cluster-down"
    )
    return 0 if exact else 1


def show(pairs: list[tuple[dict[str, Any], ...]]) -> None:
    """Print the final table."""
    print("What the stand-alone script found")
    row = "{:>7}  {:>12}  {:>10}  {:22}  {}".format
    print(styled(BOLD, row("segment", "bytes", "events", "SHA-256 of the source", "of the target")))
    for source, target in pairs:
        size, events = f"{source['length']:,}", f"{target['events']:,}"
        print(row(source["id"], size, events, source["sha256"][:20], target["sha256"][:20]))


if __name__ == "__main__":
    sys.exit(main())
