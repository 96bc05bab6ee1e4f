"""The bill of materials, as CycloneDX: Python's packages, and the rest of the image.

uv writes the list of Python's packages from the lock, with the hash of each file. The jars that the
images keep of PySpark are added, the library of the pages, and the Debian packages that the
Dockerfile names. Debian resolves their versions and their own packages when it builds the images,
so they are not known here: each image has a bill of its own, made from its contents
(`docker/bill.py`).
"""

from __future__ import annotations

import hashlib
import json
import re
import runpy
import shutil
import subprocess
import uuid
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from distribution.errors import DistributionError
from licences import patterns_of_jars
from localstore.cache import cache_root

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECONDS: Final = 120
_STAGE: Final = re.compile(r"^FROM \S+ AS runtime\n(.*?)^FROM ", re.MULTILINE | re.DOTALL)
_PACKAGES: Final = re.compile(r"--no-install-recommends \\\n\s+(.*?) >/dev/null")

Component = dict[str, Any]


def bill(root: Path, version: str, epoch: int) -> str:
    """Return the bill of materials of a version, as JSON.

    Args:
        root: the checkout.
        version: the version.
        epoch: the time in the document, in seconds since 1970.

    Raises:
        DistributionError: a source of the list is missing, or not as expected.
    """
    document = _python(root)
    document["metadata"]["timestamp"] = datetime.fromtimestamp(epoch, UTC).isoformat()
    program = document["metadata"]["component"]
    program |= {"type": "application", "version": version, "purl": f"pkg:pypi/sluice@{version}"}
    others = [*_parts(root), *_debian(root / "Dockerfile")]
    document["components"] += others
    for entry in document["dependencies"]:
        if entry["ref"] == program["bom-ref"]:
            entry["dependsOn"] += [other["bom-ref"] for other in others]
    # Debian's own dependencies are not listed.
    document["compositions"] = [{"aggregate": "incomplete", "assemblies": [program["bom-ref"]]}]
    del document["serialNumber"]  # a random number
    name = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_OID, name).urn
    return json.dumps(document, indent=1) + "\n"


def _python(root: Path) -> Any:
    """Return uv's document of Python's packages, without those for development."""
    own = cache_root() / "uv" / "bin" / "uv"  # where bootstrap.sh installs it
    uv = shutil.which("uv") or (own if own.exists() else None)
    if uv is None:
        raise DistributionError("there is no uv: run make lint once, which installs it")
    command = [uv, "export", "--quiet", "--frozen", "--no-dev", "--extra=verify"]
    command += ["--format=cyclonedx1.5"]
    done = subprocess.run(
        command, check=False, cwd=root, capture_output=True, text=True, timeout=_SECONDS
    )
    if done.returncode:
        raise DistributionError(f"uv cannot export the lock: {done.stderr.strip()}")
    return json.loads(done.stdout)


def _parts(root: Path) -> Iterator[Component]:
    """Yield the jars of PySpark that the images keep, and the package of npm that draws charts."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise DistributionError("PySpark is not installed: run make lint once, which installs it")
    of_image = runpy.run_path(str(root / "docker" / "bill.py"), run_name="bill")
    patterns = (patterns_of_jars(root, name) for name in ("unused-jars", "query-jars"))
    yield from of_image["jars"](Path(spec.origin).parent / "jars", *patterns)
    yield of_image["npm_package"](root / "docker" / "page-parts")


def _debian(dockerfile: Path) -> Iterator[Component]:
    """Yield the Debian packages that the image's last stage names."""
    stage = _STAGE.search(dockerfile.read_text(encoding="utf-8"))
    named = _PACKAGES.search(stage[1]) if stage else None
    if named is None:
        raise DistributionError(f"{dockerfile.name} has no stage 'runtime' that installs packages")
    for name in named[1].split():
        purl = f"pkg:deb/debian/{name}"
        yield {"type": "library", "bom-ref": f"deb:{name}", "name": name, "purl": purl}
