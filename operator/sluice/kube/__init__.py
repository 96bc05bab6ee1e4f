"""The operator's side of Kubernetes: API calls, Jobs, finalizers, events, the work queue."""
