"""Undo: puts files back that the agent changed, without touching what the user changed since."""
