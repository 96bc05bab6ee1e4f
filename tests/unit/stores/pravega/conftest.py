"""Certificates for tests with TLS."""

import pytest

from support.wire.tls_names import TLSNames


@pytest.fixture(scope="session")
def tls_names(tmp_path_factory: pytest.TempPathFactory) -> TLSNames:
    """Return an authority, and certificates of servers that it signed."""
    return TLSNames(tmp_path_factory.mktemp("certificates"))
