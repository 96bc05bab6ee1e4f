"""Observe copies, and carry out decisions about them."""
