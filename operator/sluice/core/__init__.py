"""Pure decisions: plans, what to do next, retry classes. No I/O, no threads, no clocks."""
