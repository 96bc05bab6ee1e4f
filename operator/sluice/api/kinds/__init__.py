"""The kinds of resources."""
