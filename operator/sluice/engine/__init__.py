"""Runs plans: stages, verifies and publishes. Knows neither Kubernetes nor Spark."""
