"""Decisions about copies of streams, copies of scopes, and runs of archives."""
