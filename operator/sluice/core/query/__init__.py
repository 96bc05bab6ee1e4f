"""Queries as documents: what may be asked, which version of a query runs, and how far it is."""
