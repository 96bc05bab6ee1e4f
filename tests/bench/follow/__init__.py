"""Benchmarks of streams that are followed: delays, speed, cost, and how long they stand still."""
