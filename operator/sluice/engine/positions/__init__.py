"""Positions of readers, moved from sources to targets."""
