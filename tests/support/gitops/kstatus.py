"""The verdicts of kstatus on objects, by which Flux and other tools judge resources."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localcluster.commands import watch
from localcluster.toolchain import GO_BUILD, GO_ENVIRONMENT, go_tool
from localstore.cache import cache_root, content_key, make_once

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCES = Path(__file__).parents[3] / "hack" / "kstatus"
COMPILE_SECONDS = 900
"""Seconds to add to the time limit of a test that may be the first to need the program."""
_SECONDS = 60


def kstatus(objects: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return each object's state by `Kind/name`: InProgress, Failed, Current, Terminating, ..."""
    return {f"{said['kind']}/{said['name']}": said["status"] for said in verdicts(objects)}


def verdicts(objects: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    """Return kstatus' verdict on each object, in order: its kind, name, status and message."""
    done = subprocess.run(
        [program()],
        input=json.dumps(list(objects)),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=_SECONDS,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def program() -> Path:
    """Return the compiled program. It is built once for each state of its sources."""
    key = content_key(path for path in SOURCES.iterdir() if path.is_file())

    def build(target: Path) -> None:
        watch(
            [go_tool(), "build", *GO_BUILD, "-o", target / "kstatus", "."],
            sign=lambda _: "still compiling kstatus",
            say=print,
            environment=GO_ENVIRONMENT,
            folder=SOURCES,
        )

    return make_once(cache_root() / f"kstatus-{key}", build) / "kstatus"
