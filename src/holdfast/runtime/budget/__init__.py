"""What a tree of sessions may spend, and what it has spent."""
