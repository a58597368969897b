"""Trust by content: what steers the agent in a project, read once, and compared with what was trusted."""
