"""The operator in a cluster, by plain seconds and by what it asks."""
