"""The operator's process, kopf's watches and the resync. `sluice.kube` does the work itself."""
