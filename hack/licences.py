"""Check the licences of the images' contents: Python packages, Spark's jars, and uPlot.

python hack/licences.py         of the packages in the lock and the jars that the images keep
python hack/licences.py BILL    of the components in a bill of materials, such as the image's own

The check fails with the name and licence of each component whose licence is unknown or not allowed.
The image has the components as published, with the texts of their licences. So the check allows
licences that ask for no more than that, and no licence that extends to Sluice itself.
"""

from __future__ import annotations

import json
import re
import runpy
import sys
import tomllib
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROOT = Path(__file__).resolve().parent.parent

ALLOWED: Final = {
    *("0BSD", "Apache-1.1", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "MIT", "PSF-2.0"),
    "Unicode-3.0",
    # These licences cover their own files and nothing else.
    *("CDDL-1.0", "CDDL-1.1", "EPL-2.0", "MPL-1.1", "MPL-2.0"),
}
"""The licences that components may have, by SPDX's names."""

NAMES: Final = (
    # The first match counts. Licences that are not allowed come first.
    (r"affero|\bAGPL", "AGPL"),
    (r"lesser|\bLGPL|/lgpl", "LGPL"),
    (r"classpath", "GPL-2.0-only WITH Classpath-exception-2.0"),
    (r"CDDL.*1\.1", "CDDL-1.1"),
    (r"\bGPL|GNU General", "GPL"),
    (r"CDDL|common development and distribution", "CDDL-1.0"),
    (r"apache.*1\.1", "Apache-1.1"),
    (r"apache|google/flatbuffers/master/LICENSE", "Apache-2.0"),
    (r"\bEPL|eclipse public|/epl|_EPLv2", "EPL-2.0"),
    (r"\bEDL|/edl|asm\.ow2|antlr\.org/license|threeten-extra/main/LICENSE", "BSD-3-Clause"),
    (r"MPL.1\.1", "MPL-1.1"),
    (r"mozilla public license.*2\.0|MPL.2\.0", "MPL-2.0"),
    (r"0BSD", "0BSD"),
    (r"BSD-2", "BSD-2-Clause"),
    (r"\bBSD", "BSD-3-Clause"),
    (r"\bMIT\b", "MIT"),
    (r"python software foundation|\bPSF\b", "PSF-2.0"),
)
"""Patterns of the names that packages give their licences, with SPDX's names."""

SILENT: Final = {
    "RoaringBitmap": "Apache-2.0",
    "antlr-runtime": "BSD-3-Clause",
    "chill*": "Apache-2.0",
    "json4s-*": "Apache-2.0",
    "jsr305": "Apache-2.0",
    "kubernetes-client*": "Apache-2.0",
    "kubernetes-httpclient-vertx": "Apache-2.0",
    "orc-*": "Apache-2.0",
    "oro": "Apache-1.1",
    "parquet-*": "Apache-2.0",
    "scala-parallel-collections_*": "Apache-2.0",
    "tink": "Apache-2.0",
    "vertx-*": "Apache-2.0",
}
"""The licences of jars that do not name one, or only in a long text, as their projects
and the pages of their Maven repositories have it."""

_EXPRESSION: Final = re.compile(r"[\w.+-]+( (AND|OR) [\w.+-]+)+")

Component = dict[str, Any]


def refused(components: Iterable[Component]) -> Iterator[str]:
    """Yield a line for each component whose licence is not allowed, or not known."""
    for one in components:
        said = _said(one)
        if not said:
            yield f"{one['name']} says nothing of its licence: look for it, and add it to SILENT"
        elif not any(map(_is_allowed, said)):
            yield f"{one['name']} has the licence {' or '.join(said)}, which is not allowed"


def _is_allowed(said: str) -> bool:
    """Tell whether a licence is allowed: a name, or an expression of SPDX without brackets."""
    if not _EXPRESSION.fullmatch(said):
        return _name(said) in ALLOWED
    parts = (part.split(" OR ") for part in said.split(" AND "))
    return all(any(_name(one) in ALLOWED for one in part) for part in parts)


def _said(component: Component) -> list[str]:
    """Return the known licences of a component, of which a user may choose any."""
    for pattern, licence in SILENT.items():
        if fnmatch(component["name"], pattern):
            return [licence]
    found = component.get("licenses", [])
    return [one.get("expression") or one["license"]["name"] for one in found]


def _name(said: str) -> str:
    """Return SPDX's name of a licence, or the package's own name if SPDX has none."""
    if said in ALLOWED:
        return said
    found = (name for pattern, name in NAMES if re.search(pattern, said, re.IGNORECASE))
    return next(found, said)


def of_checkout() -> list[Component]:
    """Return the components that images of this checkout will have, without Debian's."""
    bill = runpy.run_path(str(ROOT / "docker" / "bill.py"), run_name="bill")
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SystemExit("PySpark is not installed: run make lint once, which installs it")
    spark = Path(spec.origin).parent
    wanted = locked(tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8")))
    packages = [one for one in bill["python_packages"](spark.parent) if one["name"] in wanted]
    patterns = (patterns_of_jars(ROOT, name) for name in ("unused-jars", "query-jars"))
    pages = ROOT / "docker" / "page-parts"  # `make lint` works without it
    charts = [bill["npm_package"](pages)] if (pages / "package.json").is_file() else []
    return [*packages, *bill["jars"](spark / "jars", *patterns), *charts]


def patterns_of_jars(root: Path, name: str) -> list[str]:
    """Return the patterns of names of jars in a file of a checkout's Dockerfile."""
    lines = (root / "docker" / name).read_text(encoding="utf-8").splitlines()
    return [one for line in lines if not line.startswith("#") for one in line.split()]


def locked(lock: Mapping[str, Any]) -> set[str]:
    """Return the names of the packages that Sluice needs at run time, in both images."""
    needs = {
        one["name"]: [other["name"] for other in one.get("dependencies", [])]
        for one in lock["package"]
    }
    (extras,) = (one["optional-dependencies"] for one in lock["package"] if one["name"] == "sluice")
    found = set[str]()
    next_ones = [*needs["sluice"], *(one["name"] for one in extras["verify"])]
    while next_ones:
        name = next_ones.pop()
        if name not in found:
            found.add(name)
            next_ones += needs[name]
    return found


def main() -> int:
    """Check the licences, and return the exit code."""
    if len(sys.argv) > 1:
        listed = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["components"]
        components = [one for one in listed if not one["bom-ref"].startswith("pkg:deb/")]
    else:
        components = of_checkout()
    lines = list(refused(components))
    sys.stderr.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
