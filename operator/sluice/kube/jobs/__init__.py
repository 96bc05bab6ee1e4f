"""Jobs and pods of drivers: manifests, attempts, results."""
