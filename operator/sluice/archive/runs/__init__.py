"""Archives and their runs: recording, reading, leases, sweeping."""
