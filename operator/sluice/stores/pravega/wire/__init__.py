"""The wire protocol of segment stores."""
