"""Find resources and streams that a cluster still has in a store, and remove them."""
