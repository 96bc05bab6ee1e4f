"""The command line and the operator with one more kind: `python -m support.kinds.heartbeat ...`.

In Sluice itself, two lines register a kind: an entry in the tuple and one in the table.
"""

from __future__ import annotations

import sys

from sluice.api import registry
from support.kinds.heartbeat.resource import HEARTBEAT


def register() -> None:
    """Register the kind before any other module has read the registry."""
    vars(registry)["KINDS"] = (*registry.KINDS, HEARTBEAT)  # the line in api/registry
    from sluice.handlers.reconcilers import RECONCILERS  # noqa: PLC0415 - reads the registry
    from support.kinds.heartbeat.workings import build  # noqa: PLC0415 - reads the registry

    RECONCILERS[HEARTBEAT.name] = build  # the line in handlers/reconcilers


if __name__ == "__main__":
    register()
    from sluice.cli import main

    sys.exit(main())
