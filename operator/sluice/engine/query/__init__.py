"""Results of queries in a store: appended exactly once, and recorded in a ledger."""
