"""Real clusters: tenants, operators, nodes and attackers."""
