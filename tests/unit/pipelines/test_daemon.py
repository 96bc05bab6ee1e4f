"""The process that Spark's Python workers are forked from."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

from sluice.stores.pravega.proto import controller_pb2 as pb
from support.wire.hostile import HostileController

FORKS: Final = 8

PROGRAM: Final = f"""
import os, sys
import sluice.pipelines.spark.daemon
from sluice.config import Settings
from sluice.core.values.model import StoreAddress
from sluice.stores.connect import connect

def ask():
    store = connect(StoreAddress(uri=sys.argv[1]), Settings())
    return store.scope_exists("any")

children = []
for _ in range({FORKS}):
    child = os.fork()
    if not child:
        os._exit(0 if ask() else 1)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
sys.exit(any(codes))
"""


def test_workers_that_were_forked_call_the_store() -> None:
    """They inherit clients that their parent has imported, and not started."""
    controller = HostileController(checkScopeExists=lambda _: pb.ExistsResponse(exists=True))
    with controller.running():
        subprocess.run([sys.executable, "-c", PROGRAM, controller.uri], check=True, timeout=60)
    assert controller.calls.count("checkScopeExists") == FORKS
