"""An S3 gateway on this machine, for tests: versitygw, which keeps buckets in a directory.

`Gateway` is one process on a port of its own choice, on the loopback interface only.
"""

from s3gateway.gateway import Gateway
from s3gateway.program import VERSION, versitygw

__all__ = ["VERSION", "Gateway", "versitygw"]
