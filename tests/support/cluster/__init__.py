"""Real clusters: tenants, operators, nodes and who means ill."""
