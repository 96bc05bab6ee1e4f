"""Run the demo: Kubernetes, a real Pravega in it, Sluice by Helm, a StreamCopy of a million events.

A StreamQuery counts what was copied, and has a page. The cluster, the store and the operator stay
up, so that you can look around. Another run uses them again with new streams.

It uses only the standard library, as localcluster and localstore do. So it need not wait for 400 MB
of Python packages.
"""

import base64
import json
import re
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pageparts
import segment_hash
from localcluster import choose
from localcluster.cluster import Cluster
from localcluster.images.image import Image
from localcluster.images.store_image import store_image
from localcluster.release import NAMESPACE, install, query_image, restrict, sluice_image
from localcluster.store import ClusterStore
from localstore import ForeignClient
from localstore.cache import cache_root
from localstore.errors import LocalStoreError
from localstore.foreign_jvm import compiled_client
from localstore.jars import ensure_jars

ROOT = Path(__file__).parents[1]
COPY_FILE = ROOT / "examples" / "streamcopy.yaml"
QUERY_FILE = ROOT / "examples" / "streamquery-copy.yaml"
DEMO = "demo"
COPY = "events"
QUERY = "events-by-digit"
CLAIM = "checkpoints"
SOURCE = ("in", "events")
TARGET = ("out", "events")
EVENTS = 1_000_000
SEGMENTS = 4
KEYS = 1_000
PATIENCE = 300.0
STAGES = 6
GATEWAY = "service/sluice-gateway"
GATEWAY_PORT = 80
VIEWERS = "demo-gateway"  # the Secret that gives viewers access

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


def apply(cluster: Cluster, example: Path, *changes: tuple[str, str]) -> None:
    """Apply an example to the demo's namespace.

    Args:
        cluster: the cluster.
        example: the file.
        changes: patterns of the file's text, and the texts in their place.
    """
    text = example.read_text()
    for pattern, other in changes:
        text = re.sub(pattern, other, text)
    file = ROOT / "build" / "demo" / example.name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    shown(cluster, f"--namespace={DEMO}", "apply", f"--filename={file.relative_to(ROOT)}")


def follow(
    cluster: Cluster, kind: str, name: str, result: Callable[[dict[str, Any]], bool | None]
) -> bool:
    """Print a resource's line whenever it changes, until there is a result. Return the result.

    Args:
        cluster: the cluster.
        kind: the resource's kind.
        name: its name.
        result: function of the status, which returns None as long as there is no result.
    """
    get = (f"--namespace={DEMO}", "get", kind, name)
    say(styled(DIM, f"$ kubectl {' '.join(get)} --watch"))
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
        found = result(body.get("status", {}))  # no status before the first look
        if found is not None:
            return found
        time.sleep(0.5)
    return False


def ready(status: dict[str, Any]) -> str:
    """Return the status of the condition Ready."""
    conditions = status.get("conditions", [])
    return next((str(one["status"]) for one in conditions if one["type"] == "Ready"), "Unknown")


def is_copied(status: dict[str, Any]) -> bool | None:
    """Tell whether a copy is done; None as long as it goes on."""
    return None if ready(status) == "Unknown" else ready(status) == "True"


def is_counted(status: dict[str, Any]) -> bool | None:
    """Tell whether a query has read all that there is; None as long as it reads."""
    if ready(status) == "False":
        return False
    progress = status.get("progress") or {}
    return True if progress.get("rows") and progress.get("lagBytes") == 0 else None


def make_token(cluster: Cluster) -> str:
    """Ensure that there is a token for the gateway. Return it."""
    here = f"--namespace={NAMESPACE}"
    get = (here, "get", "secret", VIEWERS, "--ignore-not-found", "--output=json")
    if known := cluster.kubectl(*get):
        return base64.b64decode(json.loads(known)["data"]["token"]).decode()
    token = secrets.token_hex(16)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": VIEWERS}}
    body = json.dumps(secret | {"stringData": {"token": token}})
    cluster.kubectl(here, "apply", "--filename=-", stdin=body)
    return token


def install_sluice(cluster: Cluster, image: str, queries: str) -> str:
    """Install Sluice with queries and their pages, beside an empty namespace.

    Args:
        cluster: the cluster.
        image: the image's reference.
        queries: the reference of the image of queries.

    Returns:
        The gateway's token.
    """
    cluster.kubectl("delete", "namespace", DEMO, "--ignore-not-found", timeout=120)
    restrict(cluster, DEMO)  # now, because the chart gives the gateway rights there
    cluster.make_volume(DEMO, CLAIM)
    restrict(cluster, NAMESPACE)
    token = make_token(cluster)
    gateway = {
        "enabled": True,
        "namespaces": [DEMO],
        "access": "Token",
        "token": {"secretName": VIEWERS},
    }
    values = {"queries": {"image": queries}, "gateway": gateway}
    install(cluster, image, values=values, say=say)
    return token


def counts(cluster: Cluster, query: str, token: str) -> dict[str, int]:
    """Return the query's results as its page has them: the number of events of each digit."""
    path = f"/api/queries/{DEMO}/{query}/rows?format=json"
    with (
        cluster.forward(NAMESPACE, GATEWAY, GATEWAY_PORT) as port,
        closing(HTTPConnection("127.0.0.1", port, timeout=60)) as gateway,
    ):
        gateway.request("GET", path, headers={"Authorization": f"Bearer {token}"})
        rows = [json.loads(line) for line in gateway.getresponse().read().splitlines()]
    return {row["digit"]: row["events"] for row in rows}  # later rows replace earlier ones


def fetch() -> None:
    """Fetch the parts of the images of queries and of the store."""
    pageparts.place()
    ensure_jars(say)
    compiled_client()


def gateway_address(cluster: Cluster) -> str:
    """Return the gateway's address for this machine. Print what to run for it, if anything."""
    here = f"--namespace={NAMESPACE}"
    if cluster.services_reachable:
        address = cluster.kubectl(here, "get", GATEWAY, "--output=jsonpath={.spec.clusterIP}")
        return f"http://{address}"
    print(f"The query's page needs:  kubectl {here} port-forward {GATEWAY} 8000:{GATEWAY_PORT}")
    return "http://127.0.0.1:8000"


def main() -> int:
    """Run the demo. Return 0 if the copy is exact, and the query's counts are right."""
    began = time.monotonic()
    cluster = choose()
    stage = Stages(cache_root() / "demo-seconds.json").stage
    with stage(f"Kubernetes: {cluster.what}"), ThreadPoolExecutor(1) as worker:
        fetched = worker.submit(fetch)  # mostly waits, so the compiler has the processors meanwhile

        def after_fetch(describe: Callable[[], Image]) -> Callable[[], Image]:
            return lambda: (fetched.result(), describe())[1]

        image, queries, _ = cluster.up(
            say, [sluice_image, after_fetch(query_image), after_fetch(store_image)]
        )
    store = ClusterStore(cluster)
    with (
        stage(f"Pravega, as a Deployment, and Sluice, by Helm, in namespace {NAMESPACE}"),
        ThreadPoolExecutor(1) as worker,
    ):
        installed = worker.submit(install_sluice, cluster, image, queries)
        uri = store.up(say)
    token = installed.result()
    address = (r"tcp://\S+", uri)
    with store.foreign() as java:
        with stage(f"Pravega's Java client writes {EVENTS:,} events to {SEGMENTS} segments"):
            for stream in (SOURCE, TARGET):
                remove(java, *stream)
            java.create(*SOURCE, segments=SEGMENTS)
            java.write(*SOURCE, events=EVENTS, keys=KEYS)
        with stage(f"kubectl apply of {COPY_FILE.relative_to(ROOT)}"):
            apply(cluster, COPY_FILE, address)
            done = follow(cluster, "scopy", COPY, is_copied)
            shown(cluster, f"--namespace={DEMO}", "events", f"--for=streamcopy/{COPY}")
        if not done:
            print(styled(RED, "The copy did not become ready."))
            return 1
        query = f"{QUERY}-{time.strftime('%H%M%S')}"  # another run counts another copy
        with (
            stage(
                f"kubectl apply of {QUERY_FILE.relative_to(ROOT)}. Meanwhile, the Java client "
                "reads both streams, and a stand-alone script hashes them"
            ),
            store.doors() as (_, server),
        ):
            apply(cluster, QUERY_FILE, address, (QUERY, query))
            segments = {stream: java.info(*stream).segments for stream in (SOURCE, TARGET)}
            read = ThreadPoolExecutor(1).submit(lambda: (java.read(*SOURCE), java.read(*TARGET)))
            hashes = [
                [segment_hash.segment_report(*server, *stream, segment.id) for segment in known]
                for stream, known in segments.items()
            ]
            before, after = read.result()
            pairs = list(zip(*hashes, strict=True))
        with stage("The query counts the copied events by the first digit of their keys"):
            done = follow(cluster, "squery", query, is_counted)
            counted = counts(cluster, query, token) if done else {}
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
    print(styled(style, f"The copy {verdict}."))
    right = counted == expected_counts()
    style, verdict = (GREEN, "are right") if right else (RED, "are NOT right")
    told = ", ".join(f"{digit}: {number:,}" for digit, number in sorted(counted.items()))
    print(f"{styled(style, f'The counts {verdict}.')} {told}")
    print(f"{time.monotonic() - began:.0f} s in all.")
    print(
        f"Look around:  export KUBECONFIG={cluster.kubeconfig}; kubectl -n {DEMO} describe scopy "
        f"{COPY}\nWatch the query:  {gateway_address(cluster)}/q/{DEMO}/{query}#token={token}\n"
        "Stop it all:  make cluster-down"
    )
    return 0 if exact and right else 1


def expected_counts() -> dict[str, int]:
    """Return the events of each digit: the keys k0 to k999 are used in turn."""
    return dict(Counter(str(number % KEYS)[0] for number in range(EVENTS)))


def show(pairs: list[tuple[dict[str, Any], ...]]) -> None:
    """Print the final table."""
    print("What the stand-alone script found")
    row = "{:>7}  {:>12}  {:>10}  {:22}  {}".format
    print(styled(BOLD, row("segment", "bytes", "events", "SHA-256 of the source", "of the target")))
    for source, target in pairs:
        size, events = f"{source['length']:,}", f"{target['events']:,}"
        print(row(source["id"], size, events, source["sha256"][:20], target["sha256"][:20]))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (LocalStoreError, pageparts.PagePartsError) as error:
        sys.exit(f"sluice: {error}")
