"""Servers that an administrator allows or refuses, for the operator and the API server."""

from __future__ import annotations

from typing import Final

PATTERNS: Final = (
    "tls://*.stores.example.com:9090",
    "tcp://10.1.2.3:9090",
    "tcp://[::1]:*",
    "https://s3.eu-west-1.amazonaws.com",
    "https://minio.example.com:9000",
)

ALLOWED: Final = (
    "tls://a.stores.example.com:9090",
    "tls://a.b.stores.example.com:9090",
    "tcp://10.1.2.3:9090",
    "tcp://[::1]:1",
)
"""Addresses of controllers."""

REFUSED: Final = (
    "tcp://a.stores.example.com:9090",
    "tls://stores.example.com:9090",
    "tls://a.stores.example.com:19090",
    "tls://a.stores-example.com:9090",
    "tls://a.stores.example.com.evil.com:9090",
    "tcp://10.1.2.30:9090",
    "tcp://10a1b2c3:9090",
    "tcp://[::2]:1",
)

BUCKETS_ALLOWED: Final[tuple[dict[str, str], ...]] = (
    {"region": "eu-west-1"},
    {"endpoint": "https://minio.example.com:9000"},
    {"endpoint": "https://minio.example.com:9000/"},
)
"""`endpoint` and `region` of buckets."""

BUCKETS_REFUSED: Final[tuple[dict[str, str], ...]] = (
    {},
    {"region": "us-east-1"},
    {"endpoint": "https://minio.example.com"},
    {"endpoint": "http://minio.example.com:9000"},
    {"endpoint": "https://other.example.com:9000", "region": "eu-west-1"},
)
