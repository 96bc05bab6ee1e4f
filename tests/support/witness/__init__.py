"""Witnesses that tell without Sluice whether a copy is whole."""
