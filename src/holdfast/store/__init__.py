"""The store: the one place where durable session state changes (design law 1)."""
