"""Decisions about copies: of streams, of scopes, and runs of archives."""
