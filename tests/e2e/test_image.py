"""The contents of the image, and its abilities in a pod with few rights."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

import licences
from localcluster.release import query_image, restrict, sluice_image
from support.until import PATIENTLY, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from localcluster import Cluster

PHASE = "--output=jsonpath={.status.phase}"
ENDS = {"Succeeded", "Failed"}

LOOK = """
import json, os, shutil, subprocess, sys
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from sluice.pipelines.spark import java

BUILDERS = {"PIP", "UV", "INDEX", "PROXY"}

def can_write(folder):
    try:
        Path(folder, "probe").touch()
    except OSError:
        return False
    return True

def starts_from_archive():
    command = [java.java(), "-Xshare:on", *java.options("64m", {}), "-version"]
    command.remove("-Xshare:auto")
    return subprocess.run(command, capture_output=True, text=True)

started = starts_from_archive()
sources = [find_spec(name).origin for name in ("sluice.cli", "pyspark.worker", "kopf")]
print(json.dumps({
    "user": [os.getuid(), os.getgid()],
    "writable": [f for f in ("/", "/tmp", "/opt/sluice", "/home", "/var/tmp") if can_write(f)],
    "tools": list(filter(shutil.which, ("pip", "pip3", "uv", "gcc", "cc", "javac", "git", "curl"))),
    "archive": [started.returncode, started.stderr[-500:]],
    "uncompiled": [s for s in sources if not Path(cache_from_source(s)).exists()],
    "jars": sum(jar.stat().st_size for jar in java.jars().rglob("*.jar")),
    "environment": [key for key in os.environ if set(key.upper().split("_")) & BUILDERS],
}))
"""

PARTS = """
import json, subprocess
from importlib.metadata import distributions
from pathlib import Path
from sluice.pipelines.spark import java

bill = json.loads(Path("/opt/sluice/sbom.cdx.json").read_text())
debs = subprocess.run(["dpkg", "--get-selections"], capture_output=True, text=True).stdout
print(json.dumps({
    "version": bill["metadata"]["component"]["version"],
    "listed": bill["components"],
    "debs": [line.split()[0].partition(":")[0] for line in debs.splitlines()],
    "wheels": [one.name for one in distributions(path=[str(java.jars().parents[1])])],
    "jars": [jar.name for jar in java.jars().glob("*.jar")],
}))
"""

ARCHIVE = """
from pathlib import Path
from sluice.archive.formats import formats
from sluice.archive.formats.content import Checked
from sluice.archive.objects.directory import DirectoryObjects
from sluice.archive.formats.piece import Piece
from sluice.core.events.grouping import EventStart
from sluice.core.archive.manifest import ArchivedSegment
from sluice.core.archive.names import Format
from sluice.core.values.model import KeyRange

event = bytes(4) + (5).to_bytes(4, "big") + b"event"
segment = ArchivedSegment(epoch=0, id=0, keys=KeyRange(low=0, high=1), created=0, start=0, end=0,
                          sealed=False)
objects = DirectoryObjects(Path("/tmp/archive"))
for form in Format:
    piece = Piece(epoch=0, segment=0, start=0, end=13, following=EventStart(0))
    (written,) = formats.write(form, objects, piece, [memoryview(event)])
    content = Checked(objects, written.entry)
    read = formats.read(form, objects, segment, content, start=0, end=13)
    assert b"".join(map(bytes, read)) == event
    print(form)
import sluice.archive.objects.s3
"""


@pytest.fixture(scope="module")
def run(kube: Cluster, announce: Callable[[str], Any]) -> Iterator[Callable[..., str]]:
    """Yield a function that runs words in a restricted pod with a /tmp, and returns its output."""
    with announce("the images of Sluice"):
        images = [kube.provide(one, say=lambda _: None) for one in (sluice_image(), query_image())]
    namespace = f"sluice-test-{uuid4().hex[:8]}"
    restrict(kube, namespace)

    def in_pod(*words: str, queries: bool = False) -> str:
        image = images[queries]
        name = f"look-{uuid4().hex[:6]}"
        kubectl = lambda *arguments, **given: kube.kubectl(  # noqa: E731 - short for what follows
            f"--namespace={namespace}", *arguments, **given
        )
        kubectl("apply", "--filename=-", stdin=json.dumps(_pod(name, image, words)))
        phase = until(
            "the pod ends",
            lambda: ENDS.intersection([kubectl("get", f"pod/{name}", PHASE)]),
        )
        logged = kubectl("logs", name)
        assert phase == {"Succeeded"}, logged
        return logged

    yield in_pod
    kube.kubectl("delete", "namespace", namespace, PATIENTLY)


def _pod(name: str, image: str, words: tuple[str, ...]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "look",
                    "image": image,
                    "args": list(words),
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - an emptyDir
                }
            ],
            "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}],
        },
    }


@pytest.mark.parametrize("queries", [False, True], ids=["copies", "queries"])
def test_the_bill_of_materials_names_what_the_image_has(
    run: Callable[..., str], *, queries: bool
) -> None:
    """The bill of each image lists all of its parts, with allowed licences only.

    These are packages of Debian and Python, jars, and in the image of queries what draws charts.
    """
    found = json.loads(run("python", "-c", PARTS, queries=queries))
    assert found["version"] == "dev"
    listed: dict[str, list[str]] = {"deb": [], "pypi": [], "jar": [], "npm": []}
    for one in found["listed"]:
        kind = one["bom-ref"].removeprefix("pkg:").partition("/")[0].partition(":")[0]
        listed["jar" if kind == "maven" else kind].append(one["name"])
    plain = [re.sub(r"[-_.]+", "-", name).lower() for name in found["wheels"]]
    jars = [re.sub(r"(-\d[^/]*)?\.jar$", "", name) for name in found["jars"]]
    assert sorted(listed["deb"]) == sorted(found["debs"])
    assert sorted(listed["pypi"]) == sorted(plain)
    assert sorted(listed["jar"]) == sorted(jars)
    assert listed.pop("npm") == (["uplot"] if queries else [])
    assert min(map(len, listed.values())) > 20
    asked = [one for one in found["listed"] if not one["bom-ref"].startswith("pkg:deb/")]
    assert list(licences.refused(asked)) == []


def test_the_image_is_lean_and_needs_only_tmp(run: Callable[..., str]) -> None:
    """The image has no build tools and none of a builder's settings.

    Python is compiled, and Java starts from its archive of classes.
    """
    found = json.loads(run("python", "-c", LOOK))
    assert found["user"] == [65532, 65532]
    assert found["writable"] == ["/tmp"]  # noqa: S108 - the emptyDir
    assert found["tools"] == []
    assert found["archive"][0] == 0, found["archive"]
    assert found["uncompiled"] == []
    assert found["environment"] == []
    assert found["jars"] < 160e6


def test_the_image_is_sluice(run: Callable[..., str]) -> None:
    """The image's words are Sluice's commands, and it counts events in C."""
    version = run("sluice", "--version")
    assert version.startswith("sluice, version")
    assert "counts events in C" in version


def test_the_image_can_archive(run: Callable[..., str]) -> None:
    """No format and no bucket needs the parts that were removed from Arrow's wheel."""
    assert run("python", "-c", ARCHIVE).split() == ["Segments", "Parquet", "EventObjects"]
