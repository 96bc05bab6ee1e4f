"""Benchmarks of streams as tables, of queries, and of their viewers."""
