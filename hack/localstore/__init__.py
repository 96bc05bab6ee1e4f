"""A real Pravega on this machine, for the demo, the tests and the benchmarks.

`Standalone` is one JVM that forgets everything when it stops: quick to start, good for most
tests. `Cluster` is ZooKeeper, a bookie, a controller and a segment store as four processes whose
data survive, so that each of them can be killed and started again. `ForeignClient` drives the
store's own Java client and is the witness that judges what Sluice wrote.

Only the standard library is used and Linux is assumed (`/proc`, `prctl`): the package runs before
anything else of the project is installed.
"""

from localstore.accounts import User
from localstore.cluster import Cluster
from localstore.errors import LocalStoreError
from localstore.foreign import ForeignClient, ForeignClientError
from localstore.jars import ensure_jars
from localstore.standalone import Standalone

__all__ = [
    "Cluster",
    "ForeignClient",
    "ForeignClientError",
    "LocalStoreError",
    "Standalone",
    "User",
    "ensure_jars",
]
