"""What wakes the operator up: kopf's watches, a slow resync. Thin; the work is in `sluice.kube`."""
