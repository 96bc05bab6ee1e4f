"""Commands that act on the resources of a cluster, or show them."""
