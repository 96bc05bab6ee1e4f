"""Copies and claims on a store in memory."""
