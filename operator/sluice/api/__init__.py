"""The custom resources, group `sluice.dev`, version `v1alpha1`, as models."""
