"""Layered settings, trust, agents and commands. No network here, and no store: both come in as values."""
