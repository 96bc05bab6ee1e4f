"""The Go modules of our Kubernetes, without what a test cluster never uses.

A third of what would have to be compiled is there because something names it, and is never run.
So we compile copies of three modules that lack it. Most files of a copy are links. The compiler
finds the copies by a go.mod of their own; ours stays as it is.
"""

import hashlib
import json
import os
from pathlib import Path

from localcluster import slim_client
from localcluster.commands import run
from localcluster.files import link_or_copy
from localstore.cache import cache_root, make_once

SOURCES = Path(__file__).parents[1] / "cluster" / "testnode"

# Helpers of tests, which import clients that only play.
_FOR_TESTS = {
    "k8s.io/apiserver": Path("pkg/admission/plugin/policy/generic/policy_test_context.go"),
    "k8s.io/kubernetes": Path("pkg/scheduler/backend/queue/testing.go"),
}
_DOWNLOAD_SECONDS = 900.0


def trimmed_modules(go: str, environment: dict[str, str]) -> Path:
    """Return a go.mod that names the copies, which are made once.

    Args:
        go: path of Go.
        environment: variables for Go.

    Raises:
        LocalClusterError: a module is not available, or has a form that we do not know.
    """
    folder = cache_root() / f"modules-{modules_key()}"

    def fill(target: Path) -> None:
        replaced = []
        for module in (*_FOR_TESTS, slim_client.MODULE):
            original = _downloaded(module, go, environment)
            _link_sources(original, target / module)
            if module in _FOR_TESTS:
                (target / module / _FOR_TESTS[module]).unlink()
            else:
                for file, text in slim_client.slim_client(original):
                    (target / module / file).unlink()
                    (target / module / file).write_text(text)
            replaced.append(f"-replace={module}={folder / module}")
        for name in ("go.mod", "go.sum"):
            (target / name).write_bytes((SOURCES / name).read_bytes())
        run([go, "mod", "edit", *replaced, target / "go.mod"], environment=environment)

    return make_once(folder, fill) / "go.mod"


def modules_key() -> str:
    """Return a key that changes with the modules' versions and with what is left out of them."""
    digest = hashlib.sha256()
    ours = (Path(__file__), Path(slim_client.__file__))
    for file in (SOURCES / "go.mod", SOURCES / "go.sum", *ours):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:12]


def _downloaded(module: str, go: str, environment: dict[str, str]) -> Path:
    found = run(
        [go, "mod", "download", "-json", module],
        seconds=_DOWNLOAD_SECONDS,
        environment=environment,
        folder=SOURCES,
    )
    return Path(json.loads(found)["Dir"])


def _link_sources(module: Path, target: Path) -> None:
    """Link a module's files, but its tests, into a new folder."""
    for folder, _, files in os.walk(module):
        inside = target / Path(folder).relative_to(module)
        inside.mkdir(parents=True)
        for name in files:
            if not name.endswith("_test.go"):
                link_or_copy(Path(folder, name), inside / name)
