"""The user's own places and small files, outside any store: config, credentials, caches."""
