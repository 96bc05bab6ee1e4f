"""Restore drills of StreamArchives: when one begins, how it ends, and what it leaves behind."""
