"""An audit of the Jobs that were ever made in a namespace, by a watch at the API server."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sluice.kube.api.names import UID_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.tenants.tenant import Tenant


class JobAudit:
    """The Jobs that a watch has shown.

    Args:
        shown: the file that kubectl writes the watch's events to.
    """

    def __init__(self, shown: Path) -> None:
        self._shown = shown

    def made(self) -> dict[str, set[str]]:
        """Return the UIDs of all Jobs ever made, by the UID of their copy."""
        found, text, decoder = defaultdict(set), self._shown.read_text(), json.JSONDecoder()
        at = 0
        while (at := text.find("{", at)) >= 0:
            try:
                event, at = decoder.raw_decode(text, at)
            except ValueError:  # the last one is not written yet
                break
            meta = event["object"]["metadata"]
            found[meta["labels"][UID_LABEL]].add(meta["uid"])
        return dict(found)


@contextmanager
def jobs_audited(tenant: Tenant, folder: Path) -> Iterator[JobAudit]:
    """Watch the Jobs of a namespace during the block."""
    words = ("get", "jobs", "--watch", "--output-watch-events", "--output=json")
    command = tenant.cluster.kubectl_command(f"--namespace={tenant.namespace}", *words)
    shown = folder / "jobs.json"
    with shown.open("wb") as file, subprocess.Popen(command, stdout=file) as watch:
        try:
            yield JobAudit(shown)
        finally:
            watch.terminate()
