"""StreamStores: connections, credentials, probes, protection while they are in use."""
