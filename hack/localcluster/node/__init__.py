"""Our own one-node Kubernetes on this machine."""
