"""Sessions as one file: written for another store, or for OpenCode, and read back."""
