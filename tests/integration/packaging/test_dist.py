"""The files of a release. A release is built once, and checked as a user gets it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from functools import partial
from importlib.metadata import requires
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from packaging.version import Version

from distribution import chart
from distribution.errors import DistributionError
from distribution.notes import notes_of
from distribution.release import ROOT, SUMS, build, commit_time, files
from localcluster.tools import helm
from localstore.cache import cache_root
from support.kube.chart import CHART

if TYPE_CHECKING:
    from pathlib import Path

run = partial(subprocess.run, check=True, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a release of this checkout."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    build(folder)
    return folder


def only(dist: Path, pattern: str) -> Path:
    """Return the only file that matches a pattern."""
    (path,) = dist.glob(pattern)
    return path


def version_of(dist: Path) -> str:
    """Return the version in the sdist's name."""
    return only(dist, "*.tar.gz").name.removeprefix("sluice-").removesuffix(".tar.gz")


def hatchling(folder: Path, *words: str) -> str:
    """Run hatchling in a folder of sources."""
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(commit_time())}
    command = [sys.executable, "-m", "hatchling", *words]
    return str(run(command, cwd=folder, env=environment).stdout).strip()


def test_the_wheel_runs_with_the_packages_of_the_lock_and_no_others(
    dist: Path, tmp_path: Path
) -> None:
    """The wheel runs in a fresh environment with the lock's packages, and tells its version."""
    uv = shutil.which("uv") or str(cache_root() / "uv" / "bin" / "uv")
    venv = tmp_path / "venv"
    environment = os.environ | {
        "UV_PROJECT_ENVIRONMENT": str(venv),
        "UV_PYTHON": sys.executable,
        "UV_PYTHON_DOWNLOADS": "never",
        "PYTHONPATH": "",
    }
    environment.pop("VIRTUAL_ENV", None)
    sync = [uv, "sync", "--quiet", "--frozen", "--no-dev", "--no-install-project"]
    run(sync, cwd=ROOT, env=environment)
    wheel = only(dist, "*.whl")
    install = [uv, "pip", "install", "--quiet", "--no-index", f"--python={venv}", wheel]
    run(install, env=environment)
    told = run([venv / "bin" / "sluice", "--version"], env=environment, cwd=tmp_path).stdout
    assert told == f"sluice, version {version_of(dist)}, counts events in C\n"
    plugin = [venv / "bin" / "kubectl-sluice", "plan", "--help"]
    assert "Usage" in run(plugin, env=environment, cwd=tmp_path).stdout


def test_the_sdist_makes_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    """The sdist's sources give the same wheel and version in another folder without git."""
    with tarfile.open(only(dist, "*.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    (sources,) = tmp_path.iterdir()
    hatchling(sources, "build", "--target=wheel", "--directory=out")
    wheel = only(dist, "*.whl")
    assert (sources / "out" / wheel.name).read_bytes() == wheel.read_bytes()


def test_checksums_cover_all_files(dist: Path) -> None:
    """The list of checksums has the SHA-256 of each file except the list itself."""
    lines = (dist / SUMS).read_text().splitlines()
    sums = {path: digest for digest, _, path in (line.partition("  ") for line in lines)}
    actual = {
        str(path.relative_to(dist)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files(dist)
        if path.name != SUMS
    }
    assert sums == actual


def test_a_release_replaces_an_older_one_and_nothing_else(dist: Path, tmp_path: Path) -> None:
    """A second build removes old files and gives the same bytes.

    A folder of other files is refused, and its files stay.
    """
    again = tmp_path / "dist"
    shutil.copytree(dist, again)
    (again / "old").touch()
    build(again)
    read = {path.relative_to(again): path.read_bytes() for path in files(again)}
    assert read == {path.relative_to(dist): path.read_bytes() for path in files(dist)}
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.txt").touch()
    with pytest.raises(DistributionError, match="name another folder"):
        build(tmp_path / "letters")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dist", "letters"]


def test_the_chart_is_the_checkouts_with_the_version(dist: Path, tmp_path: Path) -> None:
    """The chart passes Helm's lint. Its objects equal the checkout's, except the version."""
    package = only(dist, "*.tgz")
    run([helm(), "lint", "--strict", package])
    about = yaml.safe_load(run([helm(), "show", "chart", package]).stdout)
    version = version_of(dist)
    semantic, tag = chart.semantic(Version(version)), chart.tag(version)
    assert (about["version"], about["appVersion"]) == (semantic, tag)
    checkout = tmp_path / "sluice"
    shutil.copytree(CHART, checkout)
    (checkout / "Chart.yaml").write_text(yaml.safe_dump(about))
    packaged, plain = (
        run([helm(), "template", "sluice", path, "--kube-version=1.34.0"]).stdout
        for path in (package, checkout)
    )
    assert packaged == plain
    assert f"image: localhost/sluice:{tag}\n" in packaged


def test_the_chart_as_an_artefact_is_what_helm_pulls(dist: Path) -> None:
    """Index, manifest, settings and package refer to each other by digest and size."""
    layout = dist / "chart-oci"

    def blob(entry: dict[str, Any]) -> bytes:
        content = (layout / "blobs" / "sha256" / entry["digest"].partition(":")[2]).read_bytes()
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == entry["digest"]
        assert len(content) == entry["size"]
        return content

    assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    (entry,) = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = json.loads(blob(entry))
    (layer,) = manifest["layers"]
    assert blob(layer) == only(dist, "*.tgz").read_bytes()
    about = json.loads(blob(manifest["config"]))
    assert about["name"] == "sluice"
    assert entry["annotations"]["org.opencontainers.image.ref.name"] == chart.tag(about["version"])
    assert manifest["config"]["mediaType"] == "application/vnd.cncf.helm.config.v1+json"
    assert layer["mediaType"] == "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


def test_manifests_name_the_version(dist: Path) -> None:
    """The operator's image in install.yaml is the release's, and crds.yaml has all definitions."""
    objects = list(yaml.load_all((dist / "install.yaml").read_text(), yaml.CSafeLoader))
    (deployment,) = (body for body in objects if body["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"localhost/sluice:{chart.tag(version_of(dist))}"
    definitions = list(yaml.load_all((dist / "crds.yaml").read_text(), yaml.CSafeLoader))
    assert len(definitions) == len(list((ROOT / "crds").glob("*.yaml")))


def test_the_bill_of_materials_lists_the_packages_of_the_image(dist: Path) -> None:
    """The bill lists required packages, the images' jars, charts and Java, but no tools."""
    document = json.loads(only(dist, "*.cdx.json").read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    program = document["metadata"]["component"]
    assert (program["name"], program["version"]) == ("sluice", version_of(dist))
    components = {component["bom-ref"]: component for component in document["components"]}
    names = {component["name"] for component in components.values()}
    lines = [line for line in requires("sluice") or () if "extra ==" not in line]
    required = {re.split(r"[^A-Za-z0-9-]", line)[0].lower() for line in lines}
    assert required > {"pyspark", "kopf"}
    assert required <= names
    assert {"spark-core_2.13", "openjdk-17-jre-headless", "tini"} <= names
    assert {"spark-sql_2.13", "duckdb", "uplot"} <= names  # of the image of queries
    assert names.isdisjoint({"pytest", "mypy", "spark-mllib_2.13"})
    (edges,) = (one for one in document["dependencies"] if one["ref"] == program["bom-ref"])
    assert set(edges["dependsOn"]) <= set(components)
    purls = {component.get("purl", "") for component in components.values()}
    assert any(purl.startswith("pkg:maven/org.apache.spark/spark-core_2.13@") for purl in purls)


def test_a_tag_decides_the_version(tmp_path: Path) -> None:
    """A tagged commit has the tag's version; a later commit has a development version of the next.

    An archive that git makes has the tag's version. Files without git and without the archive's
    data have version 0.0.0.
    """
    sources = tmp_path / "sources"
    sources.mkdir()
    names = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE")
    archival = (".git_archival.txt", ".gitattributes")
    for name in (*names, *archival):
        shutil.copy(ROOT / name, sources / name)
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@example.com"]
    commit = [*git, "commit", "--quiet", "--allow-empty", "--no-gpg-sign", "--message=test"]
    for command in ([*git, "init", "--quiet"], [*git, "add", "."], commit):
        run(command, cwd=sources)
    assert Version(hatchling(sources, "version")).is_devrelease
    run([*git, "tag", "v1.2.3"], cwd=sources)
    assert hatchling(sources, "version") == "1.2.3"
    archive = tmp_path / "archive"
    archive.mkdir()
    run([*git, "archive", f"--output={tmp_path / 'archive.tar'}", "HEAD"], cwd=sources)
    with tarfile.open(tmp_path / "archive.tar") as packed:
        packed.extractall(archive, filter="data")
    assert hatchling(archive, "version") == "1.2.3"
    for name in archival:
        (archive / name).unlink()
    assert hatchling(archive, "version") == "0.0.0"
    run(commit, cwd=sources)
    assert hatchling(sources, "version").startswith("1.2.4.dev1+g")


@pytest.mark.parametrize(
    ("python", "helms"),
    [
        ("1.2.3", "1.2.3"),
        ("1.2.0rc1", "1.2.0-rc.1"),
        ("1.2", "1.2.0"),
        ("1.2.4.dev3+gabc.d20270131", "1.2.4-dev.3+gabc.d20270131"),
        ("1.2.0b2.dev3", "1.2.0-beta.2.dev.3"),
    ],
)
def test_versions_for_helm_are_semantic(python: str, helms: str) -> None:
    """Each form of version that a commit can have becomes a semantic version for Helm."""
    assert chart.semantic(Version(python)) == helms


@pytest.mark.parametrize("version", ["1!1.2.3", "1.2.3.4", "1.2.3.post1"])
def test_versions_without_a_form_for_helm_are_refused(version: str) -> None:
    """A version that Helm could not order is refused, and the message names the form of tags."""
    with pytest.raises(DistributionError, match=r"tag vMAJOR\.MINOR\.PATCH"):
        chart.semantic(Version(version))


def test_release_notes_are_the_versions_part_of_the_changelog(tmp_path: Path) -> None:
    """A release has its own part of the changelog. A commit after it has the unreleased part."""
    log = tmp_path / "CHANGELOG.md"
    log.write_text(
        "# Changelog\n\n## Unreleased\n\n- C\n\n"
        "## [1.2.0] - 2027-01-31\n\n### Added\n\n- B\n\n## 1.1.0\n\n- A\n"
    )
    assert notes_of(log, "1.2.0") == "# Sluice 1.2.0\n\n### Added\n\n- B\n"
    assert notes_of(log, "1.1.0") == "# Sluice 1.1.0\n\n- A\n"
    assert notes_of(log, "1.2.1.dev4+gabc") == "# Sluice 1.2.1.dev4+gabc\n\n- C\n"
    with pytest.raises(DistributionError, match=r"'## 1\.3\.0 - YYYY-MM-DD'"):
        notes_of(log, "1.3.0")
    with pytest.raises(DistributionError, match="no version"):
        notes_of(log, "next")
