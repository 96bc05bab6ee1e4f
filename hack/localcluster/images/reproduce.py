"""Build an image twice, from nothing, and compare the two.

Sluice's image is built without its archive of Java classes, which differs between any two builds.
The base image uses this machine's archives of Debian. On other machines, the Dockerfile's
APT_SOURCES names the archives.

python -m localcluster.images.reproduce CONTEXT   e.g. `.` for Sluice's image
"""

import hashlib
import json
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from localcluster.commands import Say
from localcluster.errors import LocalClusterError
from localcluster.images.builder import Builder
from localcluster.images.image import Image
from localstore.cache import cache_root

_MOST_SHOWN = 50

Layer = dict[str, tuple[object, ...]]


def build_twice(image: Image, say: Say) -> list[str]:
    """Build an image in each of two empty storages.

    Returns:
        The differences between the two images; empty if their digests are equal.

    Raises:
        LocalClusterError: a build failed.
    """
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix="reproduce-") as folder:
        builders = [Builder(Path(folder, name)) for name in ("first", "second")]
        try:
            first, second = (_built(image, one, Path(folder), say) for one in builders)
            return [] if first[0] == second[0] else list(differences(first[1], second[1]))
        finally:
            for one in builders:
                one.release(alone=True)


def differences(first: list[Path], second: list[Path]) -> Iterator[str]:
    """Yield the differences between the layers of two images, with a line for each file."""
    if len(first) != len(second):
        yield f"{len(first)} layers, and {len(second)}"
        return
    for number, (one, other) in enumerate(zip(first, second, strict=True), 1):
        if one.name == other.name:
            continue
        before, after = _entries(one), _entries(other)
        names = [name for name in before | after if before.get(name) != after.get(name)]
        for name in names:
            yield f"layer {number}: {name}: {before.get(name)} and {after.get(name)}"
        if not names:
            yield f"layer {number}: the order of its files"


def _built(image: Image, builder: Builder, folder: Path, say: Say) -> tuple[str, list[Path]]:
    """Build an image; return its digest, and its layers as files."""
    builder.build_base(say)
    built = builder.build(image, say)
    target = folder / built.id
    builder.export(built, target)
    say(f"sha256:{built.id}")
    index = json.loads((target / "index.json").read_text())
    manifest = json.loads(_blob(target, index["manifests"][0]["digest"]).read_text())
    return built.id, [_blob(target, one["digest"]) for one in manifest["layers"]]


def _blob(folder: Path, digest: str) -> Path:
    return folder / "blobs" / digest.replace(":", "/")


def _entries(layer: Path) -> Layer:
    """Return the files of a layer by name, with all stored facts about each."""
    found: Layer = {}
    with tarfile.open(layer) as files:
        for one in files:
            file = files.extractfile(one) if one.isfile() else None
            digest = hashlib.sha256(file.read()).hexdigest()[:12] if file else one.linkname
            found[one.name] = (oct(one.mode), one.uid, one.gid, one.size, int(one.mtime), digest)
    return found


def main() -> int:
    """Compare the two builds, and return the exit code."""
    context = Path(sys.argv[1]).absolute()
    image = Image("localhost/sluice", context, build_args={"CLASS_ARCHIVE": "no"})
    try:
        found = build_twice(image, lambda text: print(text, flush=True))
    except LocalClusterError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for line in found[:_MOST_SHOWN]:
        print(line)
    print(f"{len(found)} differences" if found else "both builds have this digest")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
