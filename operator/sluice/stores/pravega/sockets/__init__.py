"""Sockets to the servers of a store, plain or with TLS."""
