"""`holdfast run`, and what other commands that make a session work share with it."""
