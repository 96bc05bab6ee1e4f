"""API servers in memory and real ones, and receivers of notices and traces."""
