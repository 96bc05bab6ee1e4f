"""What a resource asks for, its plan, and what the stores say of it."""
