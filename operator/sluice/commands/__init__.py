"""The commands of `sluice`, a module for each kind of user."""
