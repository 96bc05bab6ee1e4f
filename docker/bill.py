# noqa: INP001 - a script of the Dockerfile's
"""Write the bill of materials of the image's contents, as CycloneDX.

python bill.py TARGET PACKAGES VERSION [PAGES]

TARGET: the file. PACKAGES: the folder of Python's packages. PAGES: the folder of a package of npm.
Two builds of the same content write the same file, since it has no time and no random number.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import uuid
import zipfile
from fnmatch import fnmatch
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from importlib.metadata import PackageMetadata

_DPKG: Final = "${Package}\t${Version}\t${Architecture}\t${source:Package}\n"
_JAR: Final = re.compile(r"(.+?)-(\d[^/]*)\.jar")
_POM: Final = re.compile(r"META-INF/maven/([^/]+)/([^/]+)/pom\.properties")
_BUNDLE: Final = re.compile(r"^Bundle-License: *(.*)$", re.MULTILINE)
_LICENCES_OF_POM: Final = re.compile(r"<licenses>(.*?)</licenses>", re.DOTALL)
_HEADING: Final = 80
"""Characters at the beginning of a licence's text, which identify the licence."""
_LICENCE: Final = re.compile(r"License :: OSI Approved(?: :: (.+))?")

Component = dict[str, Any]


def python_packages(folder: Path) -> Iterator[Component]:
    """Yield Python's packages in a folder."""
    for found in sorted(distributions(path=[str(folder)]), key=lambda one: one.name.lower()):
        name = re.sub(r"[-_.]+", "-", found.name).lower()
        made = _component(f"pkg:pypi/{name}@{found.version}", name, found.version)
        licences = _licences(found.metadata)
        yield made | ({"licenses": licences} if licences else {})


def _licences(metadata: PackageMetadata) -> list[Component]:
    """Return a package's licences: an expression, its classifiers, or a short text."""
    if expression := metadata.get("License-Expression"):
        return [{"expression": expression}]
    classifiers = metadata.get_all("Classifier") or []
    named = [match[1] for one in classifiers if (match := _LICENCE.fullmatch(one)) and match[1]]
    text = (metadata.get("License") or "").strip()
    if not named and text and "\n" not in text:
        named = [text]
    return [{"license": {"name": name}} for name in named]


def jars(
    folder: Path, unused: Collection[str] = (), used: Collection[str] = ()
) -> Iterator[Component]:
    """Yield the jars in a folder, each with its Maven group if it names one.

    Args:
        folder: the folder.
        unused: patterns of names that are left out.
        used: patterns of those of them that are not.
    """
    for path in sorted(folder.glob("*.jar")):
        if _fits(path.name, unused) and not _fits(path.name, used):
            continue
        named = _JAR.fullmatch(path.name)
        name, version = named.groups() if named else (path.stem, "")
        group = _group(path, name)
        purl = f"pkg:maven/{group}/{name}@{version}" if group and version else ""
        made = _component(purl or f"jar:{path.name}", name, version)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        made["hashes"] = [{"alg": "SHA-256", "content": digest}]
        made |= {"group": group} if group else {}
        said = [{"license": {"name": one}} for one in _licences_of_jar(path)]
        yield made | ({"licenses": said} if said else {})


def _fits(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _group(jar: Path, name: str) -> str:
    with zipfile.ZipFile(jar) as files:
        for entry in files.namelist():
            if (found := _POM.fullmatch(entry)) and found[2] == name:
                return found[1]
    return ""


def _licences_of_jar(jar: Path) -> list[str]:
    """Return a jar's licences, from its manifest, pom or text. A user may choose any of them."""
    with zipfile.ZipFile(jar) as files:

        def read(pattern: str) -> Iterator[str]:
            names = (
                name for name in files.namelist() if re.fullmatch(pattern, name, re.IGNORECASE)
            )
            return (files.read(name).decode(errors="replace") for name in names)

        for manifest in read("META-INF/MANIFEST.MF"):
            if bundle := _BUNDLE.search(re.sub(r"\r?\n ", "", manifest)):
                one = (part.partition(";")[0].strip(' "\r') for part in bundle[1].split(","))
                return [
                    part for part in one if part and not part.startswith(("description", "link"))
                ]
        for pom in read("META-INF/maven/[^/]+/[^/]+/pom.xml"):
            if named := _LICENCES_OF_POM.search(pom):
                return [one.strip() for one in re.findall(r"<name>(.*?)</name>", named[1])]
        for text in read(r"(META-INF/)?LICEN[CS]E[^/]*"):
            return [" ".join(text.split())[:_HEADING]]
    return []


def npm_package(folder: Path) -> Component:
    """Return the package of npm whose files a folder has, beside its `package.json`."""
    found = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    name, version = found["name"], found["version"]
    made = _component(f"pkg:npm/{name}@{version}", name, version)
    return made | {"licenses": [{"expression": found["license"]}]}


def debian_packages() -> Iterator[Component]:
    """Yield the installed Debian packages, as dpkg lists them."""
    command = ["dpkg-query", "--show", f"--showformat={_DPKG}"]
    listed = subprocess.run(  # noqa: S603 - a command of our own
        command, check=True, capture_output=True, text=True
    ).stdout
    for line in sorted(listed.splitlines()):
        name, version, architecture, source = line.split("\t")
        purl = f"pkg:deb/debian/{name}@{version}?arch={architecture}"
        made = _component(purl, name, version)
        yield made | {"properties": [{"name": "debian:source", "value": source}]}


def _component(reference: str, name: str, version: str) -> Component:
    made: Component = {"type": "library", "bom-ref": reference, "name": name}
    made |= {"version": version} if version else {}
    return made | ({"purl": reference} if reference.startswith("pkg:") else {})


def bill(packages: Path, version: str, pages: Path | None) -> str:
    """Return the document, as JSON.

    Args:
        packages: the folder of Python's packages.
        version: Sluice's version.
        pages: the folder of the package of npm that draws charts; None in an image without pages.
    """
    parts = [*python_packages(packages), *jars(packages / "pyspark" / "jars"), *debian_packages()]
    parts += [] if pages is None else [npm_package(pages)]
    program = _component(f"pkg:pypi/sluice@{version}", "sluice", version) | {"type": "application"}
    document: Component = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": program},
        "components": parts,
    }
    name = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    document["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_OID, name).urn
    return json.dumps(document, indent=1) + "\n"


def main() -> None:
    """Write the file."""
    target, packages, version, *pages = sys.argv[1:]
    text = bill(Path(packages), version, Path(*pages) if pages else None)
    Path(target).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
