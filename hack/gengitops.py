"""Generate the patch that adds our health checks to Argo CD.

python hack/gengitops.py           write gitops/argocd/argocd-cm-patch.yaml
python hack/gengitops.py --check   fail if the file is out of date
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "gitops" / "argocd"
PATCH = FOLDER / "argocd-cm-patch.yaml"
HEAD = """\
# Made by hack/gengitops.py from the health-*.lua beside it: change those, not this file.
# kubectl patch configmap argocd-cm -n argocd --patch-file gitops/argocd/argocd-cm-patch.yaml
"""


class _Dumper(yaml.SafeDumper):
    """A dumper that writes scripts as block texts."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def scripts() -> dict[str, str]:
    """Return the health checks by group and kind, as in `sluice.dev_StreamCopy`."""
    return {
        path.stem.removeprefix("health-"): path.read_text(encoding="utf-8")
        for path in sorted(FOLDER.glob("health-*.lua"))
    }


def patch() -> str:
    """Return the text of the patch."""
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argocd-cm", "namespace": "argocd"},
        "data": {
            f"resource.customizations.health.{kind}": script for kind, script in scripts().items()
        },
    }
    return HEAD + yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=100)


def main() -> int:
    """Write or check the file. Return 1 if a check finds drift, else 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, fail on drift")
    check: bool = parser.parse_args().check
    text = patch()
    if PATCH.exists() and PATCH.read_text(encoding="utf-8") == text:
        return 0
    name = PATCH.relative_to(ROOT)
    if check:
        print(f"{name} differs from the Lua: run python hack/gengitops.py", file=sys.stderr)
        return 1
    PATCH.write_text(text, encoding="utf-8")
    print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
