"""The copy of a stream: plan, run, resume and abort it, and ask for its result."""
