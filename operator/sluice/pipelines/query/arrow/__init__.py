"""Run queries by Arrow, in the driver's own process."""
