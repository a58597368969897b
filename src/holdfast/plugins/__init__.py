"""Plugins: what they may hook into, how they are found, and how they are called without harm to a session."""
