"""The client side of the segment stores' wire protocol."""
