"""Terminals of the user: programs on pseudo-terminals, which live no longer than this process."""
