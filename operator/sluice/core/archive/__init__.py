"""Archives as values: names, manifests, heads. `docs/archive-format.md` specifies the format."""
