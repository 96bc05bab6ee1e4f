"""The `sluice` command as users run it."""
