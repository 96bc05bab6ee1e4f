"""What an archive is, as values: names, manifests, heads. `docs/archive-format.md` specifies it."""
