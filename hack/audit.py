"""Find known weaknesses of the image's Python packages, by pip-audit.

    python hack/audit.py

The lock names the packages and their versions. pip-audit asks its own default service, so this
needs a network. Debian's packages and the jars are in the image's bill of materials, which scanners
of images read (/opt/sluice/sbom.cdx.json).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from localstore.cache import cache_root

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 300

UNASKED = ("onnection", "Max retries", "timed out", "ServiceError", "could not be audited")
"""Words in pip-audit's output if it could not ask: no network, or no index of weaknesses."""


def main() -> int:
    """Run pip-audit, and print its findings.

    Returns:
        0 without weaknesses, 1 with weaknesses, 3 if the service could not be asked.
    """
    uv = shutil.which("uv") or str(cache_root() / "uv" / "bin" / "uv")  # see bootstrap.sh
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "requirements.txt")
        export = ("export", "--quiet", "--frozen", "--no-dev", "--no-emit-project", "--output-file")
        subprocess.run([uv, *export, wanted], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        # Strict, since otherwise packages that the service does not know would count as good.
        audit = ("tool", "run", "pip-audit", "--strict", "--disable-pip", "--requirement")
        try:
            done = subprocess.run(
                [uv, *audit, wanted], check=False, capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            sys.stderr.write(f"pip-audit did not end in {SECONDS} s: is there a network?\n")
            return 3
    said = f"{done.stdout}{done.stderr}"
    if done.returncode and any(one in said for one in UNASKED):
        sys.stderr.write(f"no answer: is there a network? {said.splitlines()[-1]}\n")
        return 3
    print(said.strip())
    return min(done.returncode, 1)


if __name__ == "__main__":
    raise SystemExit(main())
