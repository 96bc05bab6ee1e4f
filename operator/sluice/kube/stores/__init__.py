"""StreamStores: connections, credentials, probes, and protection while they are in use."""
