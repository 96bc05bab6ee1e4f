"""A real Pravega on this machine, for the demo, the tests and the benchmarks.

`Standalone` is one JVM that forgets everything when it stops. It starts quickly and suits most
tests. `Cluster` is ZooKeeper, a bookie, a controller and a segment store as four processes. Their
data survive, so each process can be killed and started again. `ForeignClient` drives the store's
own Java client. It is the independent witness for streams that Sluice wrote.

The package uses only the standard library, because it runs before the project's dependencies are
installed. It needs Linux (`/proc`, `prctl`).
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
