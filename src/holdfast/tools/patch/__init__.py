"""Patches as models write them: which files are made, changed, moved and removed, and how. Pure."""
