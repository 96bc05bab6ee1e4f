"""Copies, archives and claims on a store in memory."""
