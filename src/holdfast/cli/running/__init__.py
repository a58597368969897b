"""Commands that make a session work."""
