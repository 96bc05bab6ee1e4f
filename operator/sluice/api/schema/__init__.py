"""The resources' OpenAPI schema."""
