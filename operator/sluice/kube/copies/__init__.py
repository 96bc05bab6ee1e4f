"""Copies: observing them, and carrying out decisions."""
