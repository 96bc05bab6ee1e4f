"""The compilation of Kubernetes from Go modules, once for each state of the sources."""

import hashlib
import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from localcluster.commands import Say, run, watch
from localcluster.errors import LocalClusterError
from localcluster.modules import SOURCES, modules_key, trimmed_modules
from localstore.cache import cache_root, make_once

_KUBERNETES = "k8s.io/kubernetes"
_OLDEST_GO = (1, 24)
_DOWNLOAD_SECONDS = 900.0
_MINUTE = 60

# Debug information would only cost time and space.
_NO_DEBUG = "-dwarf=false"
# Packages that are compiled without inlining, which takes a fifth of the time. What they do is
# mostly to wait, or to parse once. The libraries in which an API server is busiest are not among
# them: k8s.io/apiserver, k8s.io/api and k8s.io/apimachinery.
_NOT_INLINED = (
    "github.com/google/cel-go/parser/...",
    "github.com/google/gnostic-models/...",
    "github.com/vishvananda/...",
    "helm.sh/helm/v3/...",
    "k8s.io/apiextensions-apiserver/pkg/apis/...",
    "k8s.io/apiextensions-apiserver/pkg/client/...",
    "k8s.io/cli-runtime/...",
    "k8s.io/client-go/applyconfigurations/...",
    "k8s.io/client-go/informers/...",
    "k8s.io/client-go/kubernetes/...",
    "k8s.io/kube-aggregator/...",
    "k8s.io/kubectl/...",
    "k8s.io/kubernetes/...",
    "sigs.k8s.io/kustomize/...",
)
GO_BUILD = ("-trimpath", "-buildvcs=false", f"-gcflags=all={_NO_DEBUG}")
GO_ENVIRONMENT = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
# The compiler's own garbage collector: the more memory, the less work, up to a gigabyte. One
# package is compiled on one processor, since there are always others to compile beside it.
_COMPILER = {"GOGC": "800", "GOMEMLIMIT": "1GiB", "GOMAXPROCS": "1"}


@dataclass(frozen=True)
class Programs:
    """The compiled programs.

    Attributes:
        folder: the programs' folder.
    """

    folder: Path

    @property
    def testnode(self) -> Path:
        """The program with all components of Kubernetes."""
        return self.folder / "sluice-testnode"

    @property
    def kubectl(self) -> Path:
        """The same program under the name `kubectl`, which makes it act as kubectl."""
        return self.folder / "kubectl"

    @property
    def key(self) -> str:
        """The key, which changes with the sources."""
        return self.folder.name.rpartition("-")[2]

    @property
    def there(self) -> bool:
        """Tell whether the programs are compiled."""
        return self.folder.is_dir()


def programs() -> Programs:
    """Return the programs of the present sources, compiled or not."""
    digest = hashlib.sha256(repr((_kubernetes_build(), _linker_flags(), modules_key())).encode())
    for file in sorted(path for path in SOURCES.rglob("*") if path.is_file()):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.relative_to(SOURCES)} {content}\n".encode())
    return Programs(cache_root() / f"kubernetes-{digest.hexdigest()[:12]}")


def compile_programs(say: Say) -> Programs:
    """Compile the programs unless they are compiled.

    Raises:
        LocalClusterError: Go is missing or too old, or the compiler failed.
    """
    wanted = programs()

    def build(target: Path) -> None:
        compile_go(
            "./...",
            into=target,
            linker_flags=_linker_flags(),
            what="Kubernetes",
            say=say,
        )
        (target / "testnode").rename(target / "sluice-testnode")
        (target / "kubectl").symlink_to("sluice-testnode")

    make_once(wanted.folder, build)
    return wanted


def compile_go(packages: str, *, into: Path, linker_flags: str, what: str, say: Say) -> None:
    """Compile programs with the module versions of our Kubernetes.

    Args:
        packages: Go packages of the programs.
        into: folder for the programs.
        linker_flags: flags for the linker.
        what: name of the programs for people.
        say: callback for progress messages with the time left.

    Raises:
        LocalClusterError: Go is missing or too old, or the compiler failed.
    """
    go, environment = go_tool(), {**GO_ENVIRONMENT, **_COMPILER}
    modules = f"-modfile={trimmed_modules(go, environment)}"
    listed = run(  # also downloads the modules
        [go, "list", modules, "-deps", packages],
        seconds=_DOWNLOAD_SECONDS,
        environment=environment,
        folder=SOURCES,
    )
    total = len(listed.splitlines())
    began = time.monotonic()

    def sign(lines: int) -> str:
        seconds = (time.monotonic() - began) * max(0, total - lines) / lines
        left = f"about {seconds / 60:.0f} min" if seconds > _MINUTE else "less than a minute"
        return f"still compiling {what}: {lines} of {total} packages, {left} left"

    watch(
        [
            *(go, "build", modules, *_kubernetes_build(), f"-ldflags={linker_flags}"),
            *("-v", f"-p={len(os.sched_getaffinity(0))}", "-o", f"{into}/", packages),
        ],
        sign=sign,
        say=say,
        environment=environment,
        folder=SOURCES,
    )


def module_version(module: str) -> str:
    """Return the version of a module that we compile.

    Raises:
        LocalClusterError: go.mod does not name the module.
    """
    line = re.compile(rf"^\t{re.escape(module)} (v\S+)", re.MULTILINE)
    match = line.search((SOURCES / "go.mod").read_text())
    if match is None:
        raise LocalClusterError(f"{SOURCES}/go.mod names no {module}")
    return match[1]


def go_tool() -> str:
    """Return the path of Go.

    Raises:
        LocalClusterError: Go is missing or too old.
    """
    go = shutil.which("go")
    oldest = ".".join(map(str, _OLDEST_GO))
    if go is None:
        raise LocalClusterError(f"go not found: install Go {oldest} or newer and put it on PATH")
    version = run([go, "env", "GOVERSION"], environment=GO_ENVIRONMENT).strip()
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if numbers < _OLDEST_GO:
        raise LocalClusterError(f"{go} is {version}: install Go {oldest} or newer")
    return go


def _kubernetes_build() -> tuple[str, ...]:
    """Return the flags that decide what the compiler makes of Kubernetes, and of Helm."""
    calm = (f"-gcflags={pattern}={_NO_DEBUG} -l" for pattern in _NOT_INLINED)
    return (*GO_BUILD, *calm)


def _linker_flags() -> str:
    """Return flags that set the programs' version, without which they refuse to work together."""
    version = module_version(_KUBERNETES)
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    settings = [
        f"-X {package}.{name}={value}" for package in packages for name, value in values.items()
    ]
    return " ".join(["-s -w", *settings])
