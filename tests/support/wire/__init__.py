"""Links to a store, and servers at their other end: faults, lies, certificates and logins."""
