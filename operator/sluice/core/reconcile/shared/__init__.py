"""Conditions, verdicts on failures, and stores, as the decisions about all kinds use them."""
