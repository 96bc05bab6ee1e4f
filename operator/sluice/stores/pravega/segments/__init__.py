"""Reads, appends to and changes segments at the segment stores."""
