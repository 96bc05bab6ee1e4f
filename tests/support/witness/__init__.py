"""Witnesses that check without Sluice whether a copy is whole."""
