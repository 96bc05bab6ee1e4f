"""Benchmarks of streams as tables, of queries, and of those who watch them."""
