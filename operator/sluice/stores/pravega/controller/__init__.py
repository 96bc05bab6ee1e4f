"""The client of the controller's gRPC service."""
