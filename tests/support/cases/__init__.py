"""Resources in every state, good and spoiled, and tables of them."""
