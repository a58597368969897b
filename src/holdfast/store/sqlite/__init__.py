"""The default engine: one SQLite file in WAL mode, synced at every commit."""
