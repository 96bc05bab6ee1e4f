"""Archives, in memory and on disk: runs, restores and sweeps."""
