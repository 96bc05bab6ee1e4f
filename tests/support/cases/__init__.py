"""Resources in every state, valid and invalid, and tables of them."""
