"""What tells that a copy is whole without Sluice."""
