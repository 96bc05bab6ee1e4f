"""Positions of readers, translated from sources to targets."""
