"""The directory that a session works in: its settings, agents, trust and instructions."""
