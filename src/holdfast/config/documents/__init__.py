"""One settings file: read, with the position of each value, substituted and converted."""
