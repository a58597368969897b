"""Finds the text that a model wants to replace, also where it did not write it quite as it stands. Pure."""
