"""Places for objects: a bucket, a directory."""
