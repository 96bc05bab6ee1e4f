"""Generate the files that are derived from the chart and from the CRDs.

helm/sluice/files/crds/  the CRDs, marked so that Helm never deletes them
manifests/crds.yaml      the CRDs for kubectl
manifests/install.yaml   the rest, for the whole cluster, with the chart's default values

python hack/genmanifests.py           write the files
python hack/genmanifests.py --check   fail if the files are out of date

The CRDs are in a separate file. Otherwise `kubectl delete -f install.yaml` would delete them, and
with them every StreamStore and StreamCopy of the cluster.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from localcluster.tools import helm

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "helm" / "sluice"
NAMESPACE = "sluice-system"
KUBERNETES = "1.34.0"
HEAD = "# Made by hack/genmanifests.py from {source}: change that, not this file.\n"

_KEEP = {"helm.sh/resource-policy": "keep"}
_LABELS = {"app.kubernetes.io/name": "sluice"}
_OF_HELM = ("app.kubernetes.io/managed-by", "helm.sh/chart")
_SECONDS = 60

Manifest = dict[str, Any]


class Dumper(yaml.SafeDumper):
    """A dumper that writes texts of several lines as blocks, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - overrides
        """Return True, so that no value becomes an alias."""
        return True


def _text(dumper: Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, _text)


def chart_crds() -> dict[Path, str]:
    """Return the chart's CRDs by path."""
    texts = {}
    for source in sorted((ROOT / "crds").glob("*.yaml")):
        head = HEAD.format(source=f"crds/{source.name}")
        crd = kept(yaml.safe_load(source.read_text(encoding="utf-8")))
        texts[CHART / "files" / "crds" / source.name] = head + _dump([crd])
    return texts


def kept(crd: Manifest) -> Manifest:
    """Return the CRD, marked so that Helm installs and upgrades it but never deletes it."""
    return crd | {"metadata": crd["metadata"] | {"labels": _LABELS, "annotations": _KEEP}}


def manifests(chart: Path = CHART) -> dict[Path, str]:
    """Return the plain manifests by path, rendered from a chart: a folder or a package."""
    command = [
        "template",
        "sluice",
        str(chart),
        "--namespace",
        NAMESPACE,
        "--kube-version",
        KUBERNETES,
        "--no-hooks",  # only Helm runs them
    ]
    rendered = subprocess.run(
        [helm(), *command], check=True, stdout=subprocess.PIPE, text=True, timeout=_SECONDS
    ).stdout
    objects = [_plain(found) for found in yaml.safe_load_all(rendered) if found]
    crds = [found for found in objects if found["kind"] == "CustomResourceDefinition"]
    rest = [found for found in objects if found not in crds]
    head = HEAD.format(source="helm/sluice")
    return {
        ROOT / "manifests" / "crds.yaml": head + _dump(crds),
        ROOT / "manifests" / "install.yaml": head + _dump([_namespace(), *rest]),
    }


def _plain(manifest: Manifest) -> Manifest:
    """Return the manifest without the labels and annotations that only Helm may set."""
    metadata = manifest["metadata"]
    template = manifest.get("spec", {}).get("template", {}).get("metadata", {})
    for labels in (metadata["labels"], template.get("labels", {})):
        for label in _OF_HELM:
            labels.pop(label, None)
    if metadata.get("annotations") == _KEEP:
        del metadata["annotations"]
    return manifest


def _namespace() -> Manifest:
    """Return the operator's namespace, which admits only restricted pods."""
    modes = ("enforce", "audit", "warn")
    restricted = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in modes}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": _LABELS | restricted},
    }


def _dump(objects: list[Manifest]) -> str:
    return yaml.dump_all(objects, Dumper=Dumper, sort_keys=False, width=100)


def differing(texts: dict[Path, str]) -> dict[Path, str]:
    """Return the texts whose file is missing or different."""
    return {
        path: text
        for path, text in texts.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }


def stale() -> list[Path]:
    """Return the chart's copies of CRDs that no longer exist."""
    return sorted(set((CHART / "files" / "crds").glob("*")) - set(chart_crds()))


def main() -> int:
    """Write or check the files. Return 1 if a check finds drift, else 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, fail on drift")
    check: bool = parser.parse_args().check
    if check:
        drifted = [*stale(), *differing(chart_crds()), *differing(manifests())]
        for path in drifted:
            name = path.relative_to(ROOT)
            print(f"{name} is out of date: run python hack/genmanifests.py", file=sys.stderr)
        return 1 if drifted else 0
    for path in stale():
        path.unlink()
        print(f"removed {path.relative_to(ROOT)}")
    for make in (chart_crds, manifests):  # the manifests are made from the chart's copies
        for path, text in differing(make()).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
