"""Resources that are valid and invalid, and tables of them."""
