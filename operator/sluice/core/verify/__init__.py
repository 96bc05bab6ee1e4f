"""What makes two streams alike."""
