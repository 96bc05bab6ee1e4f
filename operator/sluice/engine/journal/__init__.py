"""Records beside a target, in which the first recorded plan holds."""
