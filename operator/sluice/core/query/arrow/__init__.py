"""Compute queries by Arrow, in place of Spark: those whose parts mean exactly the same to both."""
