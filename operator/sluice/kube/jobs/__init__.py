"""Jobs and pods of drivers: their manifests, their state, and published results."""
