"""A Prometheus on this machine, for tests: Debian's package, unpacked and not installed."""

from promserver.program import Programs, programs
from promserver.server import Prometheus

__all__ = ["Programs", "Prometheus", "programs"]
