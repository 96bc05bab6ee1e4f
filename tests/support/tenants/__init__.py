"""Tenants of a real cluster: their namespaces, resources, neighbours and attackers."""
