"""Pure decisions: plans, next steps, retries. No I/O, no threads, no clocks."""
