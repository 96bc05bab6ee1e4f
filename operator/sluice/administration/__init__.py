"""The administrator's tasks in a cluster, beside the operator."""
