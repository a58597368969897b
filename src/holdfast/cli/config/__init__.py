"""`holdfast config …`."""
