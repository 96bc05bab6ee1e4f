"""Operators and drivers step by step, against an adversary."""
