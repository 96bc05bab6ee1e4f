"""An S3 gateway on this machine, for tests: versitygw, which keeps buckets in a directory.

`Gateway` is one process on a free port of the loopback interface. `ClusterGateway` is a gateway in
a pod of a cluster.
"""

from s3gateway.gateway import Gateway
from s3gateway.in_cluster import ClusterGateway, gateway_image
from s3gateway.program import VERSION, versitygw

__all__ = ["VERSION", "ClusterGateway", "Gateway", "gateway_image", "versitygw"]
