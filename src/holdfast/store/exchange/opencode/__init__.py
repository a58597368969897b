"""Brings over what OpenCode kept, in whichever of its formats, without touching it."""
