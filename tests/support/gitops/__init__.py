"""Tools of GitOps: judges of objects, and a small controller."""
