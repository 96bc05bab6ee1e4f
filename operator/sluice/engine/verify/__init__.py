"""Comparing streams that were copied before."""
