"""Queries in tests: run after run on a real store, or by both engines over rows in memory."""
