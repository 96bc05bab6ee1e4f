"""The controller's gRPC."""
