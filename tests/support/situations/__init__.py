"""Resources in every state, whose statuses the operator's own functions write."""
