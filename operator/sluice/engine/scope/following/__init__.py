"""Follow the streams of a scope, and those that it gets later."""
