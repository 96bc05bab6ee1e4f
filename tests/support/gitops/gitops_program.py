"""A small GitOps controller, which keeps a file's objects in the cluster despite any changes there.

A program by itself: `python gitops_program.py FILE SECONDS KUBECTL...`. Every SECONDS seconds it
treats each object of the file as Flux' kustomize-controller does. It makes a dry run of a
server-side apply, under that controller's name. If the outcome differs from the object, or the
object is missing, it applies in earnest. For each round it prints a line of JSON with its changes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import yaml

MANAGER = "kustomize-controller"
_KEPT = ("labels", "annotations")
_SECONDS = 30


def sync(kubectl: list[str], resource: dict[str, Any]) -> str:
    """Bring one object to the cluster. Return `created`, `configured` or nothing."""
    name = f"{resource['kind']}/{resource['metadata']['name']}"
    there = _run(kubectl, "get", name, "--ignore-not-found", "--output=json")
    apply = ("apply", "--server-side", f"--field-manager={MANAGER}", "--force-conflicts")
    text = json.dumps(resource)
    words = (*apply, "--filename=-", "--output=json")
    wanted = _run(kubectl, *words, "--dry-run=server", stdin=text)
    if there.strip() and _compared(there) == _compared(wanted):
        return ""
    _run(kubectl, *words, stdin=text)
    return "configured" if there.strip() else "created"


def _compared(text: str) -> Any:
    """Return the part that Flux compares: no status, and little metadata, which others write too.

    Between the look at the object and the dry run, the operator may have added its finalizer, or
    the garbage collector a time of deletion. That is no drift.
    """
    found = json.loads(text)
    found.pop("status", None)
    metadata = found.pop("metadata")
    return found, {field: metadata.get(field) for field in _KEPT}


def _run(kubectl: list[str], *words: str, stdin: str | None = None) -> str:
    done = subprocess.run(
        [*kubectl, *words],
        input=stdin,
        capture_output=True,
        text=True,
        check=True,
        timeout=_SECONDS,
    )
    return done.stdout


def main() -> None:
    """Run round after round, until the process is killed."""
    file, seconds, *kubectl = sys.argv[1:]
    with open(file, encoding="utf-8") as text:  # noqa: PTH123 - a program of few words
        resources = list(yaml.safe_load_all(text))
    while True:
        changes, error = [], ""
        for resource in resources:
            try:
                done = sync(kubectl, resource)
            except subprocess.CalledProcessError as failed:  # as Flux: reported, tried again
                error = failed.stderr
                continue
            if done:
                changes.append([done, resource["metadata"]["name"]])
        print(json.dumps({"changes": changes, "error": error}), flush=True)  # noqa: T201 - its log
        time.sleep(float(seconds))


if __name__ == "__main__":
    main()
