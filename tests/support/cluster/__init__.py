"""Real clusters: operators, nodes, Jobs, and servers beside them."""
