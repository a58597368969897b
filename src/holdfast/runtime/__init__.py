"""How a session runs."""
