"""The gateway's program, compiled once for each version."""

from pathlib import Path

from localcluster.commands import Say, watch
from localcluster.toolchain import GO_BUILD, GO_ENVIRONMENT, go_tool
from localstore.cache import cache_root, make_once

# Earlier versions let several conditional puts win a race (versity/versitygw#2288).
VERSION = "v1.8.0"

_MODULE = "github.com/versity/versitygw"


def versitygw(say: Say = print) -> Path:
    """Return the program, and compile it if needed.

    Raises:
        LocalClusterError: Go is missing or too old, or the compiler failed.
    """

    def build(target: Path) -> None:
        say(f"compiling versitygw {VERSION}, once ...")
        watch(
            [
                go_tool(),
                "install",
                *GO_BUILD,
                f"-ldflags=-s -w -X main.Version={VERSION}",
                f"{_MODULE}/cmd/versitygw@{VERSION}",
            ],
            sign=lambda lines: f"still compiling versitygw: {lines} modules",
            say=say,
            environment={**GO_ENVIRONMENT, "GOBIN": str(target)},
        )

    return make_once(cache_root() / f"versitygw-{VERSION}", build) / "versitygw"
