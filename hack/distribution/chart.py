"""The chart as a package of Helm, and as an artefact in the layout of an OCI registry."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from distribution.errors import DistributionError
from localcluster.tools import helm

if TYPE_CHECKING:
    from packaging.version import Version

_CONFIG: Final = "application/vnd.cncf.helm.config.v1+json"
_LAYER: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
"""Media types: those of a chart are Helm's own (helm.sh/helm/v3/pkg/registry/constants.go)."""
_SECONDS: Final = 60
_PRE: Final = {"a": "alpha", "b": "beta", "rc": "rc"}


def semantic(version: Version) -> str:
    """Return Python's version in the form that Helm asks for: 1.2.0rc1 is 1.2.0-rc.1."""
    if version.epoch or version.is_postrelease or len(version.release) > 3:  # noqa: PLR2004
        raise DistributionError(f"{version} is no version for Helm: tag vMAJOR.MINOR.PATCH")
    major, minor, patch = (*version.release, 0, 0)[:3]
    parts = [] if version.pre is None else [_PRE[version.pre[0]], str(version.pre[1])]
    parts += [] if version.dev is None else ["dev", str(version.dev)]
    text = f"{major}.{minor}.{patch}" + (f"-{'.'.join(parts)}" if parts else "")
    return f"{text}+{version.local}" if version.local else text


def tag(version: str) -> str:
    """Return a version as the tag of an image or a label's value, neither of which may have a +."""
    return version.replace("+", "_")


def package(chart: Path, into: Path, version: Version, epoch: int) -> Path:
    """Package the chart. The package has the same bytes whenever and wherever it is made.

    Args:
        chart: the chart's folder.
        into: the folder for the package.
        version: the version of chart and program.
        epoch: the time that all files get, in seconds since 1970.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [str(helm()), "package", str(chart), f"--destination={folder}"]
        versions = [f"--version={semantic(version)}", f"--app-version={tag(str(version))}"]
        subprocess.run(
            [*command, *versions], check=True, stdout=subprocess.DEVNULL, timeout=_SECONDS
        )
        (made,) = Path(folder).iterdir()
        target = into / made.name
        target.write_bytes(_settled(made.read_bytes(), epoch))
    return target


def _settled(archive: bytes, epoch: int) -> bytes:
    """Return the archive with one time for all its files, in place of Helm's present time."""
    plain = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as before,
        tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as after,
    ):
        for member in sorted(before.getmembers(), key=lambda member: member.name):
            member.mtime = epoch
            after.addfile(member, before.extractfile(member))
    return gzip.compress(plain.getvalue(), mtime=epoch)


def artefact(package: Path, into: Path, epoch: int) -> None:
    """Write the layout of an OCI registry that has the package as its only artefact.

    `skopeo copy oci:FOLDER:TAG docker://...` and `oras cp --from-oci-layout` push it.
    """
    blobs = into / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def blob(content: bytes, media: str) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(content)}

    content = package.read_bytes()
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        file = archive.extractfile("sluice/Chart.yaml")
        assert file is not None  # noqa: S101 - Helm has packaged it
        about = yaml.safe_load(file.read())
    name = "org.opencontainers.image"
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": blob(_json(about), _CONFIG),
        "layers": [blob(content, _LAYER)],
        "annotations": {
            f"{name}.title": about["name"],
            f"{name}.description": about["description"],
            f"{name}.version": about["version"],
            f"{name}.created": datetime.fromtimestamp(epoch, UTC).isoformat(),
        },
    }
    entry = blob(_json(manifest), _MANIFEST)
    entry["annotations"] = {f"{name}.ref.name": tag(about["version"])}
    (into / "index.json").write_bytes(_json({"schemaVersion": 2, "manifests": [entry]}))
    (into / "oci-layout").write_bytes(_json({"imageLayoutVersion": "1.0.0"}))


def _json(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()
