"""What the decisions about all kinds go by."""
