"""What an administrator does with a cluster, beside the operator."""
