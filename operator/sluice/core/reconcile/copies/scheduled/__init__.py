"""Resources whose runs repeat, on a schedule or by request: which run is due, and its status."""
