"""Look at StreamQueries, and act on them."""
