"""The `sluice` command as people run it."""
