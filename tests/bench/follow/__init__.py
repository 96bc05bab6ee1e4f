"""Benchmarks of streams that are followed: delays, speed, cost, and interruptions."""
