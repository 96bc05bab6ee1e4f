"""Comparison of streams that were copied before."""
