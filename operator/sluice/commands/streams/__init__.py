"""Commands about streams that are not of a copy: list, show, read and write them."""
